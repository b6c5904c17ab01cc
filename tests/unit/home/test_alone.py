"""A home that keeps everything in its own folder, whatever the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.home.database.base import DATABASE_NAME
from forebay.home.database.open import close_database, database_of
from forebay.home.paths import Home
from forebay.home.store.base import STORE_NAME
from forebay.home.store.folder_store import FolderStore
from forebay.home.store.open import own_store, store_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv(DATABASE_NAME, "mysql://nobody@nowhere/none")
    monkeypatch.setenv(STORE_NAME, "nothing that names a store")
    return Home(tmp_path / "home", alone=True)


def test_database_and_store_are_in_the_folder_and_forgotten_once_closed(home: Home) -> None:
    database_of(home).prepare()
    assert database_of(home).kind == "sqlite"
    assert {each.name for each in home.root.iterdir()} >= {"forebay.db"}
    for store in (store_of(home), own_store(home)):
        assert isinstance(store, FolderStore)
        assert store.root == home.store
    before = database_of(home)
    assert database_of(home) is before
    close_database(home)
    assert database_of(home) is not before
    database_of(home).prepare()  # there is one already
    close_database(home)
    close_database(home)  # there is none any more


def test_places_below_the_home_folder_as_a_file_sets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell replaces `~`; a file of variables for a service or a container does not."""
    for name, value in {"HOME": str(tmp_path), "FOREBAY_HOME": "~/h", STORE_NAME: "~/s"}.items():
        monkeypatch.setenv(name, value)
    found = Home.from_environment()
    assert found.root == tmp_path / "h"
    store = store_of(found)
    assert isinstance(store, FolderStore)
    assert store.root == tmp_path / "s"
