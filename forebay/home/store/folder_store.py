"""A store in a folder. Whatever is being written or removed is in `.writing` below it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from forebay.errors import InfrastructureError
from forebay.home.store.base import (
    OWNER_NAME,
    WRITING_NAME,
    Leftover,
    Store,
    Stored,
    ends_name,
    folder_of_names,
    is_tree,
    new_name,
    require_name,
)
from forebay.home.store.trees import (
    CONTENT_NAME,
    INDEX_NAME,
    index_of,
    list_tree,
    require_size,
    stored_tree,
    verify_file,
    verify_tree,
)
from forebay.system.files.durable import (
    PRIVATE_FOLDER,
    begin,
    copy_file,
    make_folder,
    remove_left,
    sync,
    without_writer,
    write_atomically,
    writing,
)
from forebay.system.files.locks import is_held
from forebay.system.files.trees import name_tree

# Another file system, another owner's file, too many links, a file system without links.
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP})
# Already gone; not empty, because something was created in it since.
_NOT_OURS = frozenset({errno.ENOENT, errno.ENOTEMPTY})


@contextmanager
def new_file_in(folder: Path, name: str) -> Iterator[BinaryIO]:
    """A new file, locked; it is removed unless the block renames it."""
    path = folder / name
    make_folder(folder)
    try:
        with _locked_file(path) as stream:
            yield stream
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def new_folder_in(folder: Path, name: str) -> Iterator[tuple[Path, BinaryIO]]:
    """A new folder and its index, locked; it is removed unless the block renames it."""
    path = folder / name
    make_folder(folder)
    path.mkdir()
    try:
        with _locked_file(path / INDEX_NAME) as stream:
            yield path, stream
    finally:
        shutil.rmtree(path, ignore_errors=True)


def link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        copy_file(source, target)


def entries(folder: Path) -> list[Path]:
    """The entries of a folder, sorted; none if it does not exist."""
    with writing(folder), suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


def remove_all(places: Iterable[Path], bin_folder: Path) -> None:
    """Remove files and folders, some of which may be gone already. A folder goes in one step."""
    changed, unnamed = set[Path](), list[Path]()
    for place in places:
        with writing(place), suppress(FileNotFoundError):
            unnamed.append(_unnamed(place, bin_folder))
            changed.add(place.parent)
    for folder in changed:
        sync(folder)  # first: a name that came back after a power loss would be half a tree
    for place in unnamed:
        with writing(place), suppress(FileNotFoundError):
            shutil.rmtree(place, onerror=_unless_gone)


def _unnamed(place: Path, bin_folder: Path) -> Path:
    """Take a name away: where its folder is now, or its file was."""
    if place.is_dir():
        make_folder(bin_folder)
        return place.rename(bin_folder / place.name)
    place.unlink()
    return place


def remove_leftover(place: Path) -> None:
    """Remove what a writer or a removal left unfinished, unless a living process still has it."""
    if not place.is_dir():
        remove_left(place)
        return
    with without_writer(place / INDEX_NAME) as is_left:
        if is_left:
            shutil.rmtree(place, onerror=_unless_gone)


def _unless_gone(_call: object, _path: str, raised: tuple[type, BaseException, object]) -> None:
    """Ignore that another process removed the same folder, or has just begun it."""
    error = raised[1]
    if not isinstance(error, OSError) or error.errno not in _NOT_OURS:
        raise error


@contextmanager
def _locked_file(path: Path) -> Iterator[BinaryIO]:
    # A folder, too, is locked through a file: NFS refuses a lock (flock) on a folder.
    descriptor = begin(path, 0o666)
    if descriptor is None:
        raise InfrastructureError(
            f"{path} was taken for a dead writer's leftover and removed: try again"
        )
    with os.fdopen(descriptor, "wb") as stream:
        yield stream


class FolderStore(Store):
    """See `Store`. A writer holds a lock (flock) on whatever it has not finished."""

    knows_writers = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self._writing = root / WRITING_NAME

    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
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
        name = new_name(folder, stem, tree=True)
        target = self.root / name
        with writing(target):
            self._make_folder(target.parent)
            new_folder = new_folder_in(self._writing, _unfinished_name(name))
            with new_folder as (unfinished, stream):
                listed, copy = list_tree(source), unfinished / CONTENT_NAME
                for path in ("", *listed.folders):
                    (copy / path).mkdir()
                for path in listed.files:
                    link_or_copy(source / path, copy / path)
                content, stored = stored_tree(name, index_of(copy, listed))
                stream.write(content)
                stream.flush()
                name_tree(unfinished, target)
        return stored

    def path(self, stored: Stored) -> Path:
        path = self._place(stored)
        verify_file(path, stored.checksum, str(path))
        return path

    def tree(self, stored: Stored) -> Path:
        folder = self._place(stored)
        return verify_tree(folder, stored, str(folder))

    def verify(self, stored: Stored) -> None:
        if is_tree(stored.name):
            self.tree(stored)
        else:
            path = self.path(stored)
            require_size(stored, path.stat().st_size, str(path))

    def is_there(self, stored: Stored) -> bool:
        place = self._place(stored)
        with writing(place):
            return (place / INDEX_NAME if is_tree(stored.name) else place).is_file()

    def url(self, stored: Stored) -> str:
        place = self._place(stored)
        return str(place / CONTENT_NAME if is_tree(stored.name) else place)

    def owner(self) -> str | None:
        place = self.root / OWNER_NAME
        with writing(place), suppress(FileNotFoundError, NotADirectoryError):
            return place.read_text().strip()
        return None

    def claim(self, home_id: str) -> None:
        self._make_folder(self.root)
        write_atomically(self.root / OWNER_NAME, f"{home_id}\n")

    def _make_folder(self, folder: Path) -> None:
        """The store itself is private to its user, unless somebody opens it to a group."""
        make_folder(self.root, PRIVATE_FOLDER)
        make_folder(folder)

    def owner_url(self) -> str:
        return str(self.root / OWNER_NAME)

    def names(self, folder: str = "") -> Iterator[str]:
        if not folder:
            return _names(self.root, "")
        below = folder_of_names(folder)
        return _names(self.root / below, f"{below}/")

    def leftovers(self, folder: str = "") -> Iterator[Leftover]:
        mark = _mark_of(folder_of_names(folder)) if folder else ""
        for path in entries(self._writing):
            # A writer locks its file, or the index of its tree.
            lock = path / INDEX_NAME if path.is_dir() else path
            if path.name.startswith(mark) and not is_held(lock):
                with suppress(FileNotFoundError):  # it has its final name by now, or was removed
                    changed_at = path.stat().st_mtime_ns // 1000
                    yield Leftover(name=f"{WRITING_NAME}/{path.name}", changed_at=changed_at)

    def remove(self, names: Iterable[str]) -> None:
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
