"""Files that other processes read: written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forebay.errors import DataError

_BLOCK_BYTES = 1 << 20


def sync_folder(folder: Path) -> None:
    """Make renames inside the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming(place: Path) -> Iterator[None]:
    """What a disk refuses while it is written to tells no path: add the place."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(place)
        raise


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` with `text`: a reader, or a restart after a crash, sees old or new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path), temporary.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Parse a JSON file that `write_atomically` wrote.

    Raises:
        DataError: when the file is there but is no JSON.
    """
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): move it away and run again") from error


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def folder_checksums(folder: Path) -> dict[str, str]:
    """Checksums of all files below a folder by relative path, each file made durable."""
    checksums: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            checksums[path.relative_to(folder).as_posix()] = file_checksum(path)
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
    return checksums
