"""How a store in a folder changes: unfinished parts are kept apart, locked by their writer."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from forebay.errors import InfrastructureError
from forebay.home.tree_index import INDEX_NAME, TreeIndex, indexed, list_tree
from forebay.system.files import copy_file, make_folder, sync, writing
from forebay.system.locks import is_held
from forebay.system.unfinished import begin, remove_left, without_writer

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


def has_writer(path: Path) -> bool:
    """Whether a living process is writing this file or folder, made by one of the above."""
    return is_held(path / INDEX_NAME if path.is_dir() else path)


def link_tree(source: Path, target: Path) -> TreeIndex:
    """Link or copy everything below a folder, and read it once."""
    listed = list_tree(source)
    target.mkdir()
    for path in listed.folders:
        (target / path).mkdir()
    files = []
    for path in listed.files:
        link_or_copy(source / path, target / path)
        files.append(indexed(target, path))
    return TreeIndex(folders=listed.folders, files=tuple(files))


def link_or_copy(source: Path, target: Path) -> None:
    """Link a file, or copy it where that is impossible."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        copy_file(source, target)


def entries(folder: Path) -> list[Path]:
    """The entries of a folder, sorted; none if it does not exist."""
    with writing(folder):
        try:
            return sorted(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []


def remove_all(places: Iterable[Path], bin_folder: Path) -> None:
    """Remove files and folders, some of which may be gone already. A folder goes in one step."""
    changed, unnamed = set[Path](), list[Path]()
    for place in places:
        with writing(place):
            found = _unnamed(place, bin_folder)
        if found is not None:
            changed.add(place.parent)
            unnamed.append(found)
    for folder in changed:
        sync(folder)  # first: a name that came back after a power loss would be half a tree
    for place in unnamed:
        with writing(place), suppress(FileNotFoundError):
            shutil.rmtree(place, onerror=_unless_gone)


def _unnamed(place: Path, bin_folder: Path) -> Path | None:
    """Take a name away: where its folder is now, or its file was; None if neither existed."""
    try:
        if place.is_dir():
            make_folder(bin_folder)
            return place.rename(bin_folder / place.name)
        place.unlink()
    except FileNotFoundError:
        return None
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
