"""The index of a tree in a store: every file with size and checksum, and every folder.

The checksum of a tree is that of its index, so a row that names the index names all bytes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from forebay.errors import DataError
from forebay.home.store import Stored
from forebay.system.files import file_digest
from forebay.system.message import Message

# What a tree holds below its own name.
INDEX_NAME, CONTENT_NAME = "index.json", "content"


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
        """What the files hold together."""
        return sum(file.size_bytes for file in self.files)


class Listed(Message):
    """Relative paths of a folder's files and subfolders; a folder before what is in it."""

    folders: tuple[str, ...]
    files: tuple[str, ...]


def list_tree(source: Path) -> Listed:
    """What is below a folder.

    Raises:
        DataError: when it is not a folder, or holds what no store can keep.
    """
    folders: list[str] = []
    files: list[str] = []
    if not source.is_dir():
        raise DataError(f"{source} is not a folder: nothing was stored")
    _list(source, "", folders, files)
    return Listed(folders=tuple(folders), files=tuple(files))


def indexed(folder: Path, path: str) -> TreeFile:
    """One file of a folder, read to its end."""
    file = folder / path
    return TreeFile(path=path, size_bytes=file.stat().st_size, checksum=file_digest(file))


def stored_tree(name: str, index: TreeIndex, content: bytes) -> Stored:
    """The record that names a tree. content: the bytes of its index."""
    checksum = hashlib.sha256(content).hexdigest()
    return Stored(name=name, checksum=checksum, size_bytes=index.size_bytes)


def index_bytes(index: TreeIndex) -> bytes:
    """An index as it is stored."""
    return index.model_dump_json().encode()


def _list(folder: Path, prefix: str, folders: list[str], files: list[str]) -> None:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = prefix + entry.name
        if not _is_text(entry.name):
            raise DataError(f"{entry.path!r} has a name that is not UTF-8: rename it")
        if entry.is_dir(follow_symlinks=False):
            folders.append(path)
            _list(folder / entry.name, f"{path}/", folders, files)
        elif entry.is_file(follow_symlinks=False):
            files.append(path)
        else:
            raise DataError(f"{entry.path} is neither a file nor a folder: nothing was stored")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
