"""Secrets of a home: who may read them, when they change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay.embedded.layout import Layout
from forebay.embedded.secret_files import USER, load_secrets, new_password, read_password
from forebay.errors import InfrastructureError
from forebay.home.paths import Home


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """With a umask that hides nothing."""
    before = os.umask(0)
    layout = Layout(Home(tmp_path))
    layout.create()
    yield layout
    os.umask(before)


def test_only_the_owner_reads_secrets(layout: Layout) -> None:
    load_secrets(layout)
    new_password(layout)
    for path in (layout.secrets, layout.passwords):
        assert path.stat().st_mode & 0o777 == 0o600


def test_keys_stay_for_the_life_of_a_home(layout: Layout) -> None:
    assert load_secrets(layout) == load_secrets(layout)


def test_keys_of_two_homes_differ(layout: Layout, tmp_path: Path) -> None:
    other = Layout(Home(tmp_path / "other"))
    other.create()
    mine, theirs = load_secrets(layout).model_dump(), load_secrets(other).model_dump()
    assert set(mine.values()).isdisjoint(theirs.values())


def test_a_new_password_replaces_the_old_one(layout: Layout) -> None:
    first = new_password(layout)
    assert read_password(layout) == first
    second = new_password(layout)
    assert second != first
    assert (json.loads(layout.passwords.read_text()), len(second)) == ({USER: second}, 20)


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_without_a_password_the_error_says_how_to_get_one(layout: Layout, text: str | None) -> None:
    if text is not None:
        layout.passwords.write_text(text)
    with pytest.raises(InfrastructureError, match="up --new-password"):
        read_password(layout)
