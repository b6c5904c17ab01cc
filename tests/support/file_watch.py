"""Which files below a folder are opened and read, by any process, by the kernel's inotify."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_ACCESS, _OPEN = 0x1, 0x20
_OVERFLOW, _IS_FOLDER = 0x4000, 0x40000000
_EVENT = struct.Struct("iIII")
_BLOCK_BYTES = 1 << 16


@dataclass
class Reads:
    """What was seen so far. `opened` and `read`: events by path relative to the folder.

    Equal events that follow each other may be told once, so counts are lower bounds; whether a
    path is in is exact. A mapped file is opened and never read.
    """

    opened: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    folders: Counter[str] = field(default_factory=Counter)


@contextmanager
def watched(folder: Path) -> Iterator[Reads]:
    """Watch a folder whose subfolders are all there; complete when the block was left."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    try:
        places = {}
        for place in [folder, *sorted(path for path in folder.rglob("*") if path.is_dir())]:
            number = library.inotify_add_watch(descriptor, bytes(place), _ACCESS | _OPEN)
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(place))
            places[number] = place.relative_to(folder)
        _drain(descriptor, places, Reads())  # the search above opened folders itself
        reads = Reads()
        yield reads
        _drain(descriptor, places, reads)
    finally:
        os.close(descriptor)


def _drain(descriptor: int, places: dict[int, Path], reads: Reads) -> None:
    while True:
        try:
            block = os.read(descriptor, _BLOCK_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(block):
            number, mask, _, length = _EVENT.unpack_from(block, at)
            assert not mask & _OVERFLOW, "the kernel dropped events"
            name = block[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0").decode()
            at += _EVENT.size + length
            path = (places[number] / name).as_posix()
            if mask & _IS_FOLDER:
                reads.folders[path] += 1
            elif mask & _OPEN:
                reads.opened[path] += 1
            elif mask & _ACCESS:
                reads.read[path] += 1
