"""The store: what was put is found as it was, or named."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.crashes import deaths

from forebay.errors import DataError
from forebay.home.paths import Home
from forebay.home.store import FolderStore, Stored


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(Home(tmp_path))


def test_what_is_put_is_found(store: FolderStore) -> None:
    stored = store.put("plans/ads/2026-03-01", "g1-../odd stream/", b"tasks")
    assert store.path(stored).read_bytes() == b"tasks"
    assert stored.size_bytes == 5
    assert stored.name.startswith("plans/ads/2026-03-01/g1-..%2Fodd%20stream%2F-")


def test_no_name_is_used_twice(store: FolderStore) -> None:
    one, other = (store.put("f", "same", content) for content in (b"1", b"2"))
    assert store.path(one).read_bytes() == b"1"
    assert store.path(other).read_bytes() == b"2"


def test_damage_is_named(store: FolderStore) -> None:
    stored = store.put("f", "x", b"content")
    path = store.path(stored)
    path.write_bytes(b"Content")
    with pytest.raises(DataError, match=rf"{path} is damaged"):
        store.path(stored)
    path.unlink()
    with pytest.raises(DataError, match=rf"{path} is missing"):
        store.path(stored)


def test_a_writer_that_dies_at_any_moment_overwrites_nothing(
    store: FolderStore, tmp_path: Path
) -> None:
    kept: list[Stored] = [store.put("f", "x", b"before")]
    for _ in deaths(tmp_path, lambda _: kept.append(store.put("f", "x", b"after"))):
        assert store.path(kept[0]).read_bytes() == b"before"
    assert store.path(kept[-1]).read_bytes() == b"after"
