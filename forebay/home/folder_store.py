"""A store in a folder. Whatever is being written or removed is in `.writing` below it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from forebay.home.folder_changes import (
    entries,
    has_writer,
    link_tree,
    new_file_in,
    new_folder_in,
    remove_all,
    remove_leftover,
)
from forebay.home.store import OWNER_NAME, Leftover, Store, Stored
from forebay.home.store_names import (
    WRITING_NAME,
    ends_name,
    folder_of_names,
    is_tree,
    new_name,
    require_name,
)
from forebay.home.tree_index import CONTENT_NAME, INDEX_NAME, index_bytes, stored_tree
from forebay.home.verified import require_size, verify_file, verify_tree
from forebay.system.files import PRIVATE_FOLDER, make_folder, sync, write_atomically, writing
from forebay.system.trees import name_tree


class FolderStore(Store):
    """See `Store`. A writer holds a lock (flock) on whatever it has not finished."""

    knows_writers = True

    def __init__(self, root: Path) -> None:
        """Nothing is created yet."""
        self.root = root
        self._writing = root / WRITING_NAME

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        """See `Store.put`."""
        name = new_name(folder, stem)
        target = self.root / name
        with writing(target):
            self._make_folder(target.parent)
            unfinished = self._writing / _unfinished_name(name)
            with new_file_in(self._writing, unfinished.name) as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
                unfinished.rename(target)
            sync(target.parent)
        checksum = hashlib.sha256(content).hexdigest()
        return Stored(name=name, checksum=checksum, size_bytes=len(content))

    def put_tree(self, folder: str, stem: str, source: Path) -> Stored:
        """See `Store.put_tree`."""
        name = new_name(folder, stem, tree=True)
        target = self.root / name
        with writing(target):
            self._make_folder(target.parent)
            new_folder = new_folder_in(self._writing, _unfinished_name(name))
            with new_folder as (unfinished, stream):
                index = link_tree(source, unfinished / CONTENT_NAME)
                content = index_bytes(index)
                stream.write(content)
                stream.flush()
                name_tree(unfinished, target)
        return stored_tree(name, index, content)

    def path(self, stored: Stored) -> Path:
        """See `Store.path`."""
        path = self._place(stored)
        verify_file(path, stored.checksum, str(path))
        return path

    def tree(self, stored: Stored) -> Path:
        """See `Store.tree`."""
        folder = self._place(stored)
        return verify_tree(folder, stored, str(folder))

    def verify(self, stored: Stored) -> None:
        """See `Store.verify`."""
        if is_tree(stored.name):
            self.tree(stored)
        else:
            path = self.path(stored)
            require_size(stored, path.stat().st_size, str(path))

    def is_there(self, stored: Stored) -> bool:
        """See `Store.is_there`."""
        place = self._place(stored)
        with writing(place):
            return (place / INDEX_NAME if is_tree(stored.name) else place).is_file()

    def url(self, stored: Stored) -> str:
        """See `Store.url`."""
        place = self._place(stored)
        return str(place / CONTENT_NAME if is_tree(stored.name) else place)

    def owner(self) -> str | None:
        """See `Store.owner`."""
        place = self.root / OWNER_NAME
        with writing(place):
            try:
                return place.read_text().strip()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def claim(self, home_id: str) -> None:
        """See `Store.claim`."""
        self._make_folder(self.root)
        write_atomically(self.root / OWNER_NAME, f"{home_id}\n")

    def _make_folder(self, folder: Path) -> None:
        """The store itself is private to its user, unless somebody opens it to a group."""
        make_folder(self.root, PRIVATE_FOLDER)
        make_folder(folder)

    def owner_url(self) -> str:
        """See `Store.owner_url`."""
        return str(self.root / OWNER_NAME)

    def names(self, folder: str = "") -> Iterator[str]:
        """See `Store.names`."""
        if not folder:
            return _names(self.root, "")
        below = folder_of_names(folder)
        return _names(self.root / below, f"{below}/")

    def leftovers(self, folder: str = "") -> Iterator[Leftover]:
        """See `Store.leftovers`."""
        mark = _mark_of(folder_of_names(folder)) if folder else ""
        for path in entries(self._writing):
            if not path.name.startswith(mark) or has_writer(path):
                continue
            try:
                changed_at = path.stat().st_mtime_ns // 1000
            except FileNotFoundError:
                continue  # it has its final name by now, or somebody removed it
            yield Leftover(name=f"{WRITING_NAME}/{path.name}", changed_at=changed_at)

    def remove(self, names: Iterable[str]) -> None:
        """See `Store.remove`."""
        places = [self._removable(name) for name in names]
        left = [place for place in places if place.parent == self._writing]
        for place in left:
            with writing(place):
                remove_leftover(place)
        remove_all([place for place in places if place not in left], self._writing)

    def _place(self, stored: Stored) -> Path:
        return self.root / require_name(stored.name)

    def _removable(self, name: str) -> Path:
        leaf = name.removeprefix(f"{WRITING_NAME}/")
        if leaf != name and "/" not in leaf and ends_name(leaf):
            return self._writing / leaf
        return self.root / require_name(name)


def _unfinished_name(name: str) -> str:
    """The name of something in `.writing`: it encodes, in few characters, where it will go."""
    folder, _, leaf = name.rpartition("/")
    return f"{_mark_of(folder)}{leaf}"


def _mark_of(folder: str) -> str:
    return f"{hashlib.sha256(folder.encode()).hexdigest()[:12]}-"


def _names(folder: Path, prefix: str) -> Iterator[str]:
    for path in entries(folder):
        if ends_name(path.name):
            yield prefix + path.name
        elif not path.name.startswith(".") and path.is_dir():
            yield from _names(path, f"{prefix}{path.name}/")
