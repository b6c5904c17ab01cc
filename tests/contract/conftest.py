"""A home over each kind of database, for suites that every kind has to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forebay.home.database.open import close_databases
from forebay.home.paths import Home


@pytest.fixture(params=["sqlite", "postgresql"])
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Home]:
    """A new home; with PostgreSQL its database is one of the session's server."""
    if request.param == "postgresql":
        new_database: Callable[[], str] = request.getfixturevalue("new_database")
        monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    yield Home(tmp_path / "home")
    close_databases()
