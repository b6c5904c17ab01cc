"""Files that other processes read: written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forebay.errors import DataError
from forebay.system.files import file_digest, write_file


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
