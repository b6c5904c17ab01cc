"""The store of a home: what every kind of it promises, and what only one kind does."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import resource
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support.s3_server import PAGE_KEYS, S3Server
from support.small_disk import grow, may_mount, tiny_file_system
from support.stored_trees import NEVER, NEVER_A_TREE, make_tree, read_tree

from forebay.errors import DataError, InfrastructureError
from forebay.home.paths import Home
from forebay.home.store.base import Leftover, Store, Stored
from forebay.home.store.folder_store import FolderStore
from forebay.home.store.open import store_of
from forebay.home.store.s3_transfers import S3Transfers
from forebay.system.instants import now_us

PLACES = ["content/variables/data-0", "content/plan.pb", "index.json"]


def put_in_child(root: str, size_bytes: int) -> None:
    store_of(Home(Path(root))).put("f", "big", bytes(size_bytes))


def put_tree_in_child(root: str, source: str) -> None:
    store_of(Home(Path(root))).put_tree("f", "model", Path(source))


def killed_when(begun: Callable[[], object], work: Callable[..., None], *arguments: object) -> None:
    """`work` in a process that gets SIGKILL as soon as something is there."""
    child = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    child.start()
    deadline = time.monotonic() + 60
    while not begun():
        assert child.is_alive(), "it ended before it was killed"
        assert time.monotonic() < deadline
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join(30)
    assert child.exitcode == -signal.SIGKILL
    child.close()


class StoreSuite(ABC):
    # What a writer has to have to be killed in the middle of it.
    big_bytes: int
    many_files: int
    very_many_files: int

    @abstractmethod
    def change(self, store: Store, path: str, content: bytes | None) -> None:
        """Change what is stored behind the store's back; None removes it."""

    @abstractmethod
    def begun(self, store: Store) -> Callable[[], bool]:
        """Says whether a writer that does not end has stored something."""

    def is_new(self, left: Leftover) -> bool:
        return abs(left.changed_at - now_us()) < 60_000_000

    @pytest.fixture
    def store(self, home: Home) -> Store:
        return store_of(home)

    @pytest.mark.parametrize("content", [b"tasks", b"", memoryview(b"view")])
    def test_what_is_put_is_found(self, store: Store, content: bytes | memoryview) -> None:
        stored = store.put("plans/ads/2026-03-01", "g1", content)
        assert (store.path(stored).read_bytes(), stored.size_bytes) == (content, len(content))
        assert stored.checksum == hashlib.sha256(content).hexdigest()
        assert stored.name.startswith("plans/ads/2026-03-01/g1-")

    def test_the_same_bytes_twice_are_two_names(self, store: Store, tmp_path: Path) -> None:
        assert list(store.names()) == list(store.leftovers()) == []
        files = [store.put("f", "same", b"same") for _ in "12"]
        source = make_tree(tmp_path / "source")
        trees = [store.put_tree("f", "same", source) for _ in "12"]
        names = {stored.name for stored in (*files, *trees)}
        assert (len(names), set(store.names())) == (4, names)
        assert (files[0].checksum, trees[0].checksum) == (files[1].checksum, trees[1].checksum)

    @pytest.mark.parametrize(
        "text",
        [
            *("..", "/", "../../etc/passwd", "a\0b", "x" * 300, "è漢字🙂"),
            *("", ".hidden", "a\nb", "-%2F?#"),
        ],
    )
    def test_any_text_makes_a_name(self, store: Store, text: str, tmp_path: Path) -> None:
        kept = store.put("f", "kept", b"kept")
        stored = store.put(f"f/{text}", text, b"content")
        tree = store.put_tree(text, text, make_tree(tmp_path / "source"))
        assert store.path(stored).read_bytes() == b"content"
        assert (store.tree(tree) / "plan.pb").read_bytes() == b"plan"
        assert sorted(store.names()) == sorted([kept.name, stored.name, tree.name])

    def test_a_folder_that_is_called_as_a_name_is_none(self, store: Store) -> None:
        first = store.put("f", "x", b"1")
        second = store.put(f"{first.name}/{NEVER_A_TREE.name}", "x", b"2")
        assert sorted(store.names()) == sorted([first.name, second.name])
        assert store.path(second).read_bytes() == b"2"

    def test_a_tree_is_found_as_it_was(self, store: Store, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "source")
        before, stored = read_tree(source), store.put_tree("models/ads", "g1", source)
        shutil.rmtree(source)
        assert read_tree(store.tree(stored)) == before
        assert read_tree(store.tree(stored)) == before  # again, now from a copy where there is one
        assert stored.size_bytes == sum(len(content or b"") for content in before.values())
        assert list(store.leftovers()) == []

    def test_an_empty_tree_is_one(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "source").mkdir()
        stored = store.put_tree("f", "x", tmp_path / "source")
        assert (list(store.tree(stored).iterdir()), list(store.names())) == ([], [stored.name])
        assert store.is_there(stored)

    def test_a_tree_of_many_files_is_one_name(self, store: Store, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "source", self.very_many_files)
        file, stored = store.put("f", "a", b"before"), store.put_tree("f", "b", source)
        assert sorted(store.names()) == sorted([file.name, stored.name])
        assert read_tree(store.tree(stored)) == read_tree(source)
        store.remove([stored.name])
        assert (list(store.names()), list(store.leftovers())) == ([file.name], [])

    def test_what_is_no_tree_is_refused(self, store: Store, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "source")
        with pytest.raises(DataError, match=r"plan\.pb is not a folder"):
            store.put_tree("f", "x", source / "plan.pb")
        with pytest.raises(DataError, match="missing is not a folder"):
            store.put_tree("f", "x", tmp_path / "missing")
        (source / "zz").symlink_to("plan.pb")
        with pytest.raises(DataError, match="zz is neither a file nor a folder"):
            store.put_tree("f", "x", source)
        assert list(store.names()) == list(store.leftovers()) == []

    def test_what_is_whole_is_verified_and_kept_nowhere(
        self, store: Store, home: Home, tmp_path: Path
    ) -> None:
        store.verify(store.put("f", "x", b"tasks"))
        store.verify(store.put("f", "x", b""))
        store.verify(store.put_tree("f", "x", make_tree(tmp_path / "source")))
        assert not home.cache.exists()

    def test_another_size_is_named(self, store: Store, tmp_path: Path) -> None:
        file = store.put("f", "x", b"tasks")
        tree = store.put_tree("f", "x", make_tree(tmp_path / "source"))
        for stored in (file, tree):
            with pytest.raises(DataError, match=rf"{stored.name} has \d+ bytes, but 3 are"):
                store.verify(stored.model_copy(update={"size_bytes": 3}))

    @pytest.mark.parametrize("content", [b"Tasks", b"task", None, b""])
    def test_a_damaged_file_is_named(self, store: Store, content: bytes | None) -> None:
        stored = store.put("f", "x", b"tasks")
        self.change(store, stored.name, content)
        word = "missing" if content is None else "damaged"
        for read in (store.path, store.verify):
            with pytest.raises(DataError, match=rf"{stored.name} is {word}.* FOREBAY_STORE"):
                read(stored)
        assert store.is_there(stored) is (content is not None)

    @pytest.mark.parametrize("content", [b"plaN", b"p", None, b""])
    @pytest.mark.parametrize("place", PLACES)
    def test_a_damaged_tree_is_named(
        self, store: Store, tmp_path: Path, place: str, content: bytes | None
    ) -> None:
        stored = store.put_tree("f", "x", make_tree(tmp_path / "source"))
        self.change(store, f"{stored.name}/{place}", content)
        word = "missing" if content is None else "damaged"
        for read in (store.tree, store.verify):
            with pytest.raises(DataError, match=rf"{stored.name}/{place} is {word}.* FOREBAY_"):
                read(stored)
        assert store.is_there(stored) is (content is not None or place != "index.json")

    def test_what_was_never_stored_is_named(self, store: Store) -> None:
        with pytest.raises(DataError, match=f"{NEVER.name} is missing"):
            store.path(NEVER)
        with pytest.raises(DataError, match=rf"{NEVER_A_TREE.name}.* is missing"):
            store.tree(NEVER_A_TREE)
        assert not store.is_there(NEVER)
        assert not store.is_there(NEVER_A_TREE)

    def test_removing_is_done_once(self, store: Store, tmp_path: Path) -> None:
        kept, file = store.put("f", "kept", b"kept"), store.put("f", "file", b"1")
        tree = store.put_tree("f", "tree", make_tree(tmp_path / "source"))
        for _ in "12":
            store.remove([file.name, tree.name, NEVER.name, NEVER_A_TREE.name])
            assert list(store.names()) == [kept.name]
            assert not store.is_there(tree)
        store.remove([])
        assert list(store.leftovers()) == []

    @pytest.mark.parametrize(
        "name", ["", "/", ".", "..", "f", "../kept", "f/kept", f"../{NEVER.name}", f"/{NEVER.name}"]
    )
    def test_what_is_no_name_is_refused(self, store: Store, name: str) -> None:
        kept = store.put("f", "kept", b"kept")
        with pytest.raises(DataError, match="is not a name in a store"):
            store.remove([kept.name, name])
        with pytest.raises(DataError, match="is not a name in a store"):
            store.path(NEVER.model_copy(update={"name": name}))
        assert list(store.names()) == [kept.name]

    def test_what_is_not_ours_is_no_name(self, store: Store) -> None:
        stored = store.put("f", "x", b"ours")
        for path in ("README", "f/notes", "f/.hidden", "other/deep/file-1234"):
            self.change(store, path, b"somebody's")
        assert (list(store.names()), list(store.leftovers())) == ([stored.name], [])

    def test_a_put_that_is_killed_leaves_no_name(self, store: Store, home: Home) -> None:
        kept = store.put("f", "kept", b"kept")
        killed_when(self.begun(store), put_in_child, str(home.root), self.big_bytes)
        self.check_leftovers(store, [kept.name])

    def test_a_tree_that_is_killed_leaves_no_name(
        self, store: Store, home: Home, tmp_path: Path
    ) -> None:
        kept = store.put("f", "kept", b"kept")
        source = make_tree(tmp_path / "source", self.many_files)
        killed_when(self.begun(store), put_tree_in_child, str(home.root), str(source))
        self.check_leftovers(store, [kept.name])
        assert read_tree(store.tree(store.put_tree("f", "model", source))) == read_tree(source)

    def check_leftovers(self, store: Store, names: list[str]) -> None:
        assert list(store.names()) == names
        (left,) = store.leftovers()
        assert self.is_new(left)
        for _ in "12":
            store.remove([left.name])
            assert list(store.leftovers()) == []
        assert list(store.names()) == names

    def test_a_forked_child_uses_it(self, store: Store) -> None:
        stored, child = store.put("f", "x", b"content"), os.fork()
        if not child:
            found = store.path(stored).read_bytes()
            store.put("f", "child", b"child")
            os._exit(0 if found == b"content" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(list(store.names())) == 2


class TestFolder(StoreSuite):
    big_bytes = 200 << 20
    many_files = 1000
    very_many_files = 400

    @pytest.fixture
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
        monkeypatch.delenv("FOREBAY_STORE", raising=False)
        return Home(tmp_path / "home")

    def change(self, store: Store, path: str, content: bytes | None) -> None:
        assert isinstance(store, FolderStore)
        place = store.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if content is not None:
            place.write_bytes(content)

    def begun(self, store: Store) -> Callable[[], bool]:
        assert isinstance(store, FolderStore)
        return lambda: any((store.root / ".writing").glob("*"))

    def test_a_person_is_told_a_path(self, store: Store, home: Home, tmp_path: Path) -> None:
        file = store.put("f", "x", b"1")
        tree = store.put_tree("f", "x", make_tree(tmp_path / "source"))
        assert store.url(file) == str(store.path(file)) == str(home.root / "store" / file.name)
        assert store.url(tree) == str(store.tree(tree))

    def test_a_file_of_the_same_disk_is_linked_and_any_other_one_is_copied(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = make_tree(tmp_path / "source")
        tree = store.tree(store.put_tree("f", "x", source))
        assert (tree / "plan.pb").samefile(source / "plan.pb")
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(18, "Invalid cross-device link")))
        tree = store.tree(store.put_tree("f", "x", source))
        assert read_tree(tree) == read_tree(source)
        assert not (tree / "plan.pb").samefile(source / "plan.pb")

    def test_another_folder_is_named_by_the_environment(
        self, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FOREBAY_STORE", str(tmp_path / "shared"))
        stored = store_of(home).put("f", "x", b"1")
        assert (tmp_path / "shared" / stored.name).read_bytes() == b"1"

    @pytest.mark.parametrize("tree", [False, True])
    def test_a_full_disk_loses_nothing(self, tmp_path: Path, tree: bool) -> None:
        folder = tmp_path / "disk"
        store, source = FolderStore(folder / "store"), tmp_path / "source"
        source.mkdir()
        (source / "data").write_bytes(bytes(1 << 20))

        def put() -> Stored:
            return store.put_tree("f", "x", source) if tree else store.put("f", "x", bytes(1 << 20))

        with full_disk(folder) as make_room:
            kept = store.put("f", "kept", b"kept")
            with pytest.raises(
                InfrastructureError, match=rf"{folder}/store.*(free some space|big)"
            ):
                put()
            assert (list(store.names()), list(store.leftovers())) == ([kept.name], [])
            make_room()
            assert store.is_there(put())
            assert store.path(kept).read_bytes() == b"kept"


@contextmanager
def full_disk(folder: Path) -> Iterator[Callable[[], None]]:
    """No room for a MiB in this folder until the function that it gives is called."""
    if may_mount():
        with tiny_file_system(folder, 256 << 10):
            yield lambda: grow(folder, 16 << 20)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, hard))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestS3(StoreSuite):
    big_bytes = 100 << 20
    many_files = 200
    very_many_files = PAGE_KEYS + 20

    @pytest.fixture
    def home(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        new_s3_address: Callable[[], str],
        s3_server: S3Server,
    ) -> Home:
        address = new_s3_address()
        monkeypatch.setenv("FOREBAY_STORE", address)
        monkeypatch.setattr("forebay.home.store.s3_objects._KEYS_AT_ONCE", PAGE_KEYS)
        self.bucket = address.split("/")[2]
        self.client = s3_server.client
        return Home(tmp_path / "home")

    def change(self, store: Store, path: str, content: bytes | None) -> None:
        key = {"Bucket": self.bucket, "Key": f"some/folder/{path}"}
        if content is None:
            self.client.delete_object(**key)
        else:
            self.client.put_object(**key, Body=content)

    def keys(self) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def uploads(self) -> list[dict[str, Any]]:
        return list(self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", []))

    def begun(self, store: Store) -> Callable[[], bool]:
        before = self.keys()
        return lambda: self.keys() != before or bool(self.uploads())

    def is_new(self, left: Leftover) -> bool:
        # The server says the same of every upload in parts: that it began in 2010.
        return bool(self.uploads()) or super().is_new(left)

    def test_a_person_is_told_a_url(self, store: Store, tmp_path: Path) -> None:
        file = store.put("f", "x", b"1")
        tree = store.put_tree("f", "x", make_tree(tmp_path / "source"))
        assert store.url(file) == f"s3://{self.bucket}/some/folder/{file.name}"
        assert store.url(tree) == f"s3://{self.bucket}/some/folder/{tree.name}/content"
        assert f"some/folder/{tree.name}/content/plan.pb" in self.keys()
        store.remove([tree.name, file.name])
        assert self.keys() == [], "what is removed leaves no object"

    def test_a_large_file_goes_in_parts(self, store: Store, tmp_path: Path) -> None:
        content = os.urandom(40 << 20)
        assert store.path(store.put("f", "x", content)).read_bytes() == content
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "data").write_bytes(content)
        tree = store.tree(store.put_tree("f", "x", tmp_path / "source"))
        assert ((tree / "data").read_bytes(), self.uploads()) == (content, [])

    def test_a_damaged_copy_is_fetched_again_and_a_whole_one_needs_no_server(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored = store.put_tree("f", "x", make_tree(tmp_path / "source"))
        for damage in (b"plaN", None):
            copy = store.tree(stored) / "plan.pb"
            copy.unlink()
            if damage:
                copy.write_bytes(damage)
            assert (store.tree(stored) / "plan.pb").read_bytes() == b"plan"
        monkeypatch.setattr(S3Transfers, "download", None)
        assert (store.tree(stored) / "plan.pb").read_bytes() == b"plan"

    def test_a_full_disk_below_the_copies_is_named(
        self, store: Store, home: Home, tmp_path: Path
    ) -> None:
        stored = store.put("f", "x", bytes(1 << 20))
        with full_disk(home.root) as make_room:
            with pytest.raises(InfrastructureError, match=rf"{home.root}.*(free some space|big)"):
                store.path(stored)
            make_room()
            assert store.path(stored).stat().st_size == 1 << 20
