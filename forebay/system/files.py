"""Files that survive a crash: written whole or not at all, logs that may lose only their tail."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forebay.errors import DataError, InfrastructureError


@contextmanager
def disk(place: Path) -> Iterator[None]:
    """Turn what the disk refuses into our error, with the place that was to be written."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"{place}: {error}") from error


def sync_folder(folder: Path) -> None:
    """Make creations and renames inside a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, content: bytes) -> None:
    """Replace a file: readers, and a restart after a crash, see the old or the new content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def append_line(path: Path, text: str) -> None:
    """Append one line in one write; a torn line before it is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (b"\n" if torn else b"") + text.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> list[str]:
    """The lines of a log; none when it is not there."""
    if not path.is_file():
        return []
    return path.read_bytes().decode("utf-8", errors="replace").splitlines()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


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
    with naming(path):
        write_file(path, text.encode())


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Parse a JSON file that `write_atomically` wrote.

    Raises:
        DataError: when the file is there but is no JSON.
    """
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): move it away and run again") from error


def folder_checksums(folder: Path) -> dict[str, str]:
    """Checksums of all files below a folder by relative path, each file made durable."""
    checksums: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            checksums[path.relative_to(folder).as_posix()] = file_digest(path)
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
    return checksums
