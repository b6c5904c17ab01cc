"""The home as a power failure leaves it.

SQLite's own files count as they are: its commits are durable, and it syncs its names itself.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

from forebay.home.database.sqlite import FILE_NAME
from support.synced import Synced

_BY_SQLITE = (FILE_NAME, f"{FILE_NAME}-wal")
_MEMORY_NAME = f"{FILE_NAME}-shm"


@dataclass(frozen=True)
class Loss:
    """What a loss of power takes: all that was not synced, or what `chance` says.

    A disk keeps what was synced. Of all else it may keep any part, in any order: a name before the
    bytes that belong to it, zeros or half of what was appended, one of two names.
    """

    chance: random.Random | None

    def entry(self, synced: int | None, now: int | None) -> int | None:
        """Which inode a name leads to."""
        if synced == now or self.chance is None:
            return synced
        return self.chance.choice((synced, now))

    def content(self, synced: bytes | None, now: bytes) -> bytes:
        """What a file holds: where its length is the same, one sector was written or not."""
        least = synced or b""
        if least == now or self.chance is None:
            return least
        if len(least) == len(now):
            return self.chance.choice((least, now))
        some = now[: self.chance.randrange(len(now) + 1)]
        return self.chance.choice((least, some, bytes(len(now)), now))


@dataclass(frozen=True)
class Image:
    """Writes what a loss of power leaves of a home."""

    synced: Synced
    loss: Loss

    def write(self, home: Path, target: Path) -> None:
        """`target` is the home then; it is not made where nothing is left."""
        now = self.synced.hold(str(home)) if home.is_dir() else None
        number = self.loss.entry(self.synced.number(home), now)
        if number is not None:
            self._write(number, target, is_home=True)

    def _write(self, number: int, target: Path, *, is_home: bool = False) -> None:
        place = self.synced.place(number)
        mode = Path(place).stat().st_mode & 0o7777
        if os.path.isdir(place):  # noqa: PTH112 - as the kernel names it
            target.mkdir()
            for name, entry in self._entries(number, place, is_home=is_home).items():
                self._write(entry, target / name)
        else:
            now = Path(place).read_bytes()
            is_sqlite = target.name in _BY_SQLITE
            left = now if is_sqlite else self.loss.content(self.synced.files.get(number), now)
            target.write_bytes(left)
        target.chmod(mode)

    def _entries(self, number: int, place: str, *, is_home: bool) -> dict[str, int]:
        synced = self.synced.folders.get(number, {})
        now = {name: self.synced.hold(f"{place}/{name}") for name in os.listdir(place)}  # noqa: PTH208
        left = {
            name: now.get(name)
            if is_home and name in _BY_SQLITE
            else self.loss.entry(synced.get(name), now.get(name))
            for name in sorted(synced.keys() | now.keys())
            if not (is_home and name == _MEMORY_NAME)
        }
        return {name: each for name, each in left.items() if each is not None}
