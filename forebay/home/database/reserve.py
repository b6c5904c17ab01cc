"""A file without content in the home, which `forebay gc` removes first.

A database needs room to forget rows, and so does SQLite merely to be read: on a full disk, gc could
free nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.home.database.identity import MARKER_NAME
from forebay.system.files.durable import writing

RESERVE_NAME = "reserve"
# More than the log of a transaction of gc, and the memory that SQLite shares.
RESERVE_BYTES = 1 << 20
_LEAST_BYTES = 128 << 10


def make_reserve(root: Path) -> None:
    """Have one, as large as there is room for; none on a disk without any."""
    place, size = root / RESERVE_NAME, RESERVE_BYTES
    while size >= _LEAST_BYTES:
        try:
            with place.open("ab") as reserve:
                os.posix_fallocate(reserve.fileno(), 0, size)
        except OSError:
            place.unlink(missing_ok=True)
            size //= 2
        else:
            return


@contextmanager
def reserve_freed(root: Path) -> Iterator[None]:
    """Its room is free for the block; a folder that is no home has none, and gets none."""
    with writing(root / RESERVE_NAME):
        (root / RESERVE_NAME).unlink(missing_ok=True)
    try:
        yield
    finally:
        if (root / MARKER_NAME).exists():
            make_reserve(root)
