"""Compares what is in a store with what was stored: verified, or reported as missing or damaged."""

from __future__ import annotations

import hashlib
from pathlib import Path

from forebay.errors import DataError
from forebay.home.store import STORE_NAME, Stored
from forebay.home.tree_index import CONTENT_NAME, INDEX_NAME, TreeIndex
from forebay.system.files import file_digest, writing

_RESTORE = f"Restore it from a backup, or correct {STORE_NAME}"


class Digest:
    """Counts bytes and computes their checksum, without keeping them."""

    def __init__(self) -> None:
        """No bytes yet."""
        self.size_bytes = 0
        self._digest = hashlib.sha256()

    def write(self, content: bytes) -> None:
        """Add the next bytes."""
        self._digest.update(content)
        self.size_bytes += len(content)

    def require(self, checksum: str, place: str) -> None:
        """Check that these are the bytes that were stored. place: for the error.

        Raises:
            DataError: when they are not.
        """
        if self._digest.hexdigest() != checksum:
            raise _damaged(place)


def read_index(content: bytes, stored: Stored, place: str) -> TreeIndex:
    """The index of a tree.

    Raises:
        DataError: when these are not the bytes that were stored.
    """
    if hashlib.sha256(content).hexdigest() != stored.checksum:
        raise _damaged(f"{place}/{INDEX_NAME}")
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
        raise _damaged(place)


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
    """The error for what is not in the store."""
    return DataError(f"{place} is missing. {_RESTORE}")


def _damaged(place: str) -> DataError:
    return DataError(f"{place} is damaged: its checksum is not the one stored. {_RESTORE}")
