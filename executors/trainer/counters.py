"""Durable counters: int64 values in a memory-mapped file, which survive SIGKILL."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from forebay.system.files.durable import sync, write_atomically


class DurableCounters:
    """Named int64 counters in one file. The page cache keeps them when the process is killed.

    After a power loss they are as last synced, or newer.
    """

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        """Open or create the file; the counters of an earlier process continue."""
        self._path = path
        size_bytes = 8 * len(names)
        if not path.exists() or path.stat().st_size != size_bytes:
            write_atomically(path, bytes(size_bytes))
        self._index = {name: position for position, name in enumerate(names)}
        self._values = np.memmap(path, dtype=np.int64, mode="r+", shape=(len(names),))

    def add(self, name: str, amount: int) -> None:
        """Add to a counter."""
        self._values[self._index[name]] += amount

    def value(self, name: str) -> int:
        """The value of a counter."""
        return int(self._values[self._index[name]])

    def sync(self) -> None:
        """Make all that was added durable."""
        sync(self._path)
