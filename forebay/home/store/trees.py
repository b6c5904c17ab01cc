"""The index of a tree in a store: every file with size and checksum, and every folder.

The checksum of a tree is that of its index, so a row that names the index names all bytes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from forebay.errors import DataError
from forebay.home.store.base import STORE_NAME, Stored
from forebay.system.files.durable import file_digest, writing
from forebay.system.message import Message

# What a tree holds below its own name.
INDEX_NAME, CONTENT_NAME = "index.json", "content"
_RESTORE = f"Restore it from a backup, or correct {STORE_NAME}"


class TreeFile(Message):
    """One file. path: relative, with slashes; checksum: SHA-256."""

    path: str
    size_bytes: int
    checksum: str


class TreeIndex(Message):
    """All files and folders of a tree, in order."""

    folders: tuple[str, ...]
    files: tuple[TreeFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


class Listed(NamedTuple):
    """Relative paths of a folder's subfolders and files; a folder before what is in it."""

    folders: list[str]
    files: list[str]


def list_tree(source: Path) -> Listed:
    """What is below a folder.

    Raises:
        DataError: when it is not a folder, or holds what no store can keep.
    """
    if not source.is_dir():
        raise DataError(f"{source} is not a folder: nothing was stored")
    found = Listed([], [])
    _list(source, "", found)
    return found


def _list(folder: Path, prefix: str, found: Listed) -> None:
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        path = prefix + entry.name
        try:
            path.encode()
        except UnicodeEncodeError:
            raise DataError(f"{entry.path!r} has a name that is not UTF-8: rename it") from None
        if entry.is_dir(follow_symlinks=False):
            found.folders.append(path)
            _list(folder / entry.name, f"{path}/", found)
        elif entry.is_file(follow_symlinks=False):
            found.files.append(path)
        else:
            raise DataError(f"{entry.path} is neither a file nor a folder: nothing was stored")


def index_of(folder: Path, listed: Listed) -> TreeIndex:
    """The index of what is listed, from files below a folder, which are read to their ends."""
    files = [
        TreeFile(
            path=path,
            size_bytes=(folder / path).stat().st_size,
            checksum=file_digest(folder / path),
        )
        for path in listed.files
    ]
    return TreeIndex(folders=tuple(listed.folders), files=tuple(files))


def stored_tree(name: str, index: TreeIndex) -> tuple[bytes, Stored]:
    """An index as it is stored, and the record that names the tree."""
    content = index.model_dump_json().encode()
    checksum = hashlib.sha256(content).hexdigest()
    return content, Stored(name=name, checksum=checksum, size_bytes=index.size_bytes)


def read_index(content: bytes, stored: Stored, place: str) -> TreeIndex:
    """The index of a tree.

    Raises:
        DataError: when these are not the bytes that were stored.
    """
    if hashlib.sha256(content).hexdigest() != stored.checksum:
        raise damaged(f"{place}/{INDEX_NAME}")
    index = TreeIndex.model_validate_json(content)
    require_size(stored, index.size_bytes, place)
    return index


def require_size(stored: Stored, size_bytes: int, place: str) -> None:
    """Check that what is stored has the size that was recorded.

    Raises:
        DataError: when it does not.
    """
    if size_bytes != stored.size_bytes:
        raise DataError(
            f"{place} has {size_bytes} bytes, but {stored.size_bytes} are expected: the row that "
            "names it is damaged. Restore the database from a backup"
        )


def verify_file(path: Path, checksum: str, place: str) -> None:
    """Check that a file is as it was stored. place: for the error.

    Raises:
        DataError: when it is missing or damaged.
    """
    with writing(path):
        try:
            found = file_digest(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise missing(place) from None
    if found != checksum:
        raise damaged(place)


def verify_tree(folder: Path, stored: Stored, place: str) -> Path:
    """Check that a tree is as it was stored; returns the folder with its content.

    Raises:
        DataError: naming the first file that is missing or damaged.
    """
    with writing(folder):
        try:
            content = (folder / INDEX_NAME).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise missing(f"{place}/{INDEX_NAME}" if folder.is_dir() else place) from None
    index = read_index(content, stored, place)
    for path in index.folders:
        if not (folder / CONTENT_NAME / path).is_dir():
            raise missing(f"{place}/{CONTENT_NAME}/{path}")
    for file in index.files:
        where = f"{place}/{CONTENT_NAME}/{file.path}"
        verify_file(folder / CONTENT_NAME / file.path, file.checksum, where)
    return folder / CONTENT_NAME


def missing(place: str) -> DataError:
    return DataError(f"{place} is missing. {_RESTORE}")


def damaged(place: str) -> DataError:
    return DataError(f"{place} is damaged: its checksum is not the one stored. {_RESTORE}")
