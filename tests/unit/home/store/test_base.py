"""A store in a folder: after a dead writer or a power failure, a name is whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.crashes import deaths, disk, tree_at

from forebay.home.store.base import Stored
from forebay.home.store.folder_store import FolderStore

CONTENT = {"variables": {"data": b"weights"}, "empty": {}, "plan": b"plan"}


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "variables").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "variables" / "data").write_bytes(b"weights")
    (folder / "plan").write_bytes(b"plan")
    return folder


def test_a_file_and_a_tree_are_there_after_a_power_loss(
    store: FolderStore, tmp_path: Path, source: Path
) -> None:
    with disk(tmp_path) as watched:
        stored = store.put("f/g", "x", b"content")
        assert watched.after_power_loss(store.root / stored.name) == b"content"
        assert watched.after_power_loss(store.root / "f" / "g") is not None
        assert watched.after_power_loss(store.root) is not None
        kept = watched.after_power_loss(store.root / store.put_tree("t/u", "x", source).name)
        assert isinstance(kept, dict)
        assert kept["content"] == CONTENT
        assert isinstance(kept["index.json"], bytes)


def test_a_writer_of_a_file_dies_at_any_moment(store: FolderStore, tmp_path: Path) -> None:
    kept: list[Stored] = [store.put("f", "x", b"before")]
    for _ in deaths(tmp_path, lambda _: kept.append(store.put("f", "x", b"after"))):
        assert store.path(kept[0]).read_bytes() == b"before"
        for name in store.names():
            assert (store.root / name).read_bytes() in {b"before", b"after"}
    assert store.path(kept[-1]).read_bytes() == b"after"


def test_a_writer_of_a_tree_dies_at_any_moment(
    store: FolderStore, source: Path, tmp_path: Path
) -> None:
    kept: list[Stored] = []
    for _ in deaths(tmp_path, lambda _: kept.append(store.put_tree("f", "x", source))):
        for name in store.names():
            assert tree_at(store.root / name / "content") == CONTENT
        left = [each.name for each in store.leftovers()]
        assert set(left) == {f".writing/{path.name}" for path in store.root.glob(".writing/*")}
        store.remove(left)
        assert (list(store.leftovers()), tree_at(source)) == ([], CONTENT)
    assert tree_at(store.tree(kept[-1])) == CONTENT


def test_a_removal_that_dies_leaves_a_tree_or_a_leftover(
    store: FolderStore, source: Path, tmp_path: Path
) -> None:
    stored = store.put_tree("f", "x", source)
    for watched in deaths(tmp_path, lambda _: store.remove([stored.name])):
        if store.is_there(stored):
            assert tree_at(store.tree(stored)) == CONTENT
        else:
            assert list(store.names()) == []
        lost_power = watched.after_power_loss(store.root / stored.name)
        if isinstance(lost_power, dict) and not store.is_there(stored):
            assert lost_power["content"] == CONTENT  # the name may come back, but whole
    store.remove([each.name for each in store.leftovers()])
    assert list(store.names()) == list(store.leftovers()) == []
