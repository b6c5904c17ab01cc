"""A store in a folder. What is being written, or removed, is in `.writing` below it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from forebay.home.store import Leftover, Store, Stored
from forebay.home.store_names import ends_name, is_tree, new_name, require_name
from forebay.home.tree_index import (
    CONTENT_NAME,
    INDEX_NAME,
    TreeIndex,
    index_bytes,
    indexed,
    list_tree,
    stored_tree,
    verify_file,
    verify_tree,
)
from forebay.system.files import make_folder, sync, writing
from forebay.system.locks import is_held
from forebay.system.trees import name_tree

WRITING_NAME = ".writing"
# Another file system, another owner's file, too many links, a file system without links.
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP})


class FolderStore(Store):
    """See `Store`. Whoever writes holds a lock (flock) on what is not finished."""

    def __init__(self, root: Path) -> None:
        """Nothing is made yet."""
        self.root = root
        self._writing = root / WRITING_NAME

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        """See `Store.put`."""
        name = new_name(folder, stem)
        target = self.root / name
        with writing(target):
            make_folder(target.parent)
            with self._new_file(target.name) as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
                (self._writing / target.name).rename(target)
            sync(target.parent)
        checksum = hashlib.sha256(content).hexdigest()
        return Stored(name=name, checksum=checksum, size_bytes=len(content))

    def put_tree(self, folder: str, stem: str, source: Path) -> Stored:
        """See `Store.put_tree`."""
        name = new_name(folder, stem, tree=True)
        target = self.root / name
        with writing(target):
            make_folder(target.parent)
            with self._new_folder(target.name) as unfinished:
                index = _linked(source, unfinished / CONTENT_NAME)
                content = index_bytes(index)
                (unfinished / INDEX_NAME).write_bytes(content)
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

    def is_there(self, stored: Stored) -> bool:
        """See `Store.is_there`."""
        place = self._place(stored)
        with writing(place):
            return (place / INDEX_NAME if is_tree(stored.name) else place).is_file()

    def url(self, stored: Stored) -> str:
        """See `Store.url`."""
        place = self._place(stored)
        return str(place / CONTENT_NAME if is_tree(stored.name) else place)

    def names(self) -> Iterator[str]:
        """See `Store.names`."""
        return _names(self.root, "")

    def leftovers(self) -> Iterator[Leftover]:
        """See `Store.leftovers`."""
        for path in _entries(self._writing):
            if is_held(path):
                continue
            try:
                changed_at = path.stat().st_mtime_ns // 1000
            except FileNotFoundError:
                continue  # it has its name meanwhile, or somebody removed it
            yield Leftover(name=f"{WRITING_NAME}/{path.name}", changed_at=changed_at)

    def remove(self, names: Iterable[str]) -> None:
        """See `Store.remove`."""
        changed: set[Path] = set()
        for place in [self._removable(name) for name in names]:
            with writing(place):
                if _removed(place, self._writing):
                    changed.add(place.parent)
        for folder in changed:
            sync(folder)

    def _place(self, stored: Stored) -> Path:
        return self.root / require_name(stored.name)

    def _removable(self, name: str) -> Path:
        leaf = name.removeprefix(f"{WRITING_NAME}/")
        if leaf != name and "/" not in leaf and ends_name(leaf):
            return self._writing / leaf
        return self.root / require_name(name)

    @contextmanager
    def _new_file(self, name: str) -> Iterator[BinaryIO]:
        """A file in `.writing`, locked; it goes unless the block renames it."""
        path = self._writing / name
        make_folder(self._writing)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(path, flags, 0o666), "wb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                yield stream
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def _new_folder(self, name: str) -> Iterator[Path]:
        """A folder in `.writing`, locked; it goes unless the block renames it."""
        path = self._writing / name
        make_folder(self._writing)
        path.mkdir()
        try:
            with _lock_on(path):
                yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock_on(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _linked(source: Path, target: Path) -> TreeIndex:
    """Link or copy everything below a folder, and read it once."""
    listed = list_tree(source)
    target.mkdir()
    for path in listed.folders:
        (target / path).mkdir()
    files = []
    for path in listed.files:
        _link(source / path, target / path)
        files.append(indexed(target, path))
    return TreeIndex(folders=listed.folders, files=tuple(files))


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copyfile(source, target)


def _names(folder: Path, prefix: str) -> Iterator[str]:
    for path in _entries(folder):
        if ends_name(path.name):
            yield prefix + path.name
        elif not path.name.startswith(".") and path.is_dir():
            yield from _names(path, f"{prefix}{path.name}/")


def _entries(folder: Path) -> list[Path]:
    with writing(folder):
        try:
            return sorted(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []


def _removed(place: Path, bin_folder: Path) -> bool:
    """Whether a file or a folder was there until now. A folder's name goes in one step."""
    try:
        if not place.is_dir():
            place.unlink()
            return True
        if place.parent != bin_folder:
            make_folder(bin_folder)
            folder, place = place.parent, place.rename(bin_folder / place.name)
            sync(folder)  # first: a name that came back after a loss of power would be half a tree
        shutil.rmtree(place, onerror=_unless_gone)
    except FileNotFoundError:
        return False
    return True


def _unless_gone(_call: object, _path: str, raised: tuple[type, BaseException, object]) -> None:
    """Another process may remove the same folder."""
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]
