"""Counts of rows received for each (window, generation), in a file that outlives its writer.

The counters are a shared memory map: what was counted before a SIGKILL stays counted.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

from forebay.errors import DataError

_KEY_BYTES = 120
_COUNT = struct.Struct("<q")
_RECORD_BYTES = _KEY_BYTES + _COUNT.size
_RECORDS_GROWN = 64


class ReceivedCounter:
    """Rows received by any process of a job. One process writes at a time."""

    def __init__(self, path: Path) -> None:
        """Open or create the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._descriptor).st_size
        if size % _RECORD_BYTES:
            os.close(self._descriptor)
            raise DataError(f"{path} is no file of received rows ({size} bytes)")
        self._map = self._mapped(size or _RECORDS_GROWN * _RECORD_BYTES)
        self._places = {
            key: place + _KEY_BYTES
            for place in range(0, len(self._map), _RECORD_BYTES)
            if (key := self._map[place : place + _KEY_BYTES].rstrip(b"\0"))
        }

    def add(self, window: str, generation: int, rows: int) -> None:
        """Count rows that were received."""
        place = self._place(_key(window, generation))
        value = _COUNT.unpack_from(self._map, place)[0]
        _COUNT.pack_into(self._map, place, value + rows)

    def rows(self, window: str, generation: int) -> int:
        """Rows received so far."""
        place = self._places.get(_key(window, generation))
        if place is None:
            return 0
        count: int = _COUNT.unpack_from(self._map, place)[0]
        return count

    def close(self) -> None:
        """Give the file back."""
        if not self._map.closed:
            self._map.close()
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _place(self, key: bytes) -> int:
        if key not in self._places:
            start = len(self._places) * _RECORD_BYTES
            if start == len(self._map):
                self._map.close()
                self._map = self._mapped(start + _RECORDS_GROWN * _RECORD_BYTES)
            self._map[start : start + _KEY_BYTES] = key.ljust(_KEY_BYTES, b"\0")
            self._places[key] = start + _KEY_BYTES
        return self._places[key]

    def _mapped(self, size: int) -> mmap.mmap:
        # Blocks are allocated now: a full disk must be an error here and not a SIGBUS later.
        os.posix_fallocate(self._descriptor, 0, size)
        return mmap.mmap(self._descriptor, size)


def _key(window: str, generation: int) -> bytes:
    key = f"{window}/g{generation}".encode()
    if len(key) > _KEY_BYTES:
        raise ValueError(f"window key {window!r} is too long")
    return key
