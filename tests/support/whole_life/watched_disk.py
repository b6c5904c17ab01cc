"""A life whose disk is watched: no row may name what a loss of power would take, and at each of its
writes the home can be had as a loss of power would leave it.

What TensorFlow or Arrow write in C++ counts once Python has synced it, as all of it has to be.
"""

from __future__ import annotations

import os
import pickle
import random
import resource
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from forebay.home.database.sqlite import FILE_NAME
from forebay.home.database.tables import STORED
from forebay.system.files import trees
from support.synced import Synced

# What changes folders and files, and what makes it durable.
CALLS = (
    *("rename", "replace", "link", "symlink", "unlink", "remove", "rmdir", "mkdir", "write"),
    *("fsync", "fdatasync"),
)
_SYNCS = ("fsync", "fdatasync")
# They count as they are: SQLite's commits are durable, and it syncs its names itself.
_BY_SQLITE = (FILE_NAME, f"{FILE_NAME}-wal")
_MEMORY_NAME = f"{FILE_NAME}-shm"


@dataclass(frozen=True)
class Loss:
    """What a loss of power takes: all that was not synced, or what `chance` says.

    A disk keeps what was synced. Of all else it may keep any part, in any order: a name before the
    bytes that belong to it, zeros or half of what was appended, one of two names.

    takes: a kill takes nothing, the page cache outlives the process.
    """

    chance: random.Random | None = None
    takes: bool = True

    def entry(self, synced: int | None, now: int | None) -> int | None:
        if not self.takes:
            return now
        if synced == now or self.chance is None:
            return synced
        return self.chance.choice((synced, now))

    def content(self, synced: bytes | None, now: bytes) -> bytes:
        """What a file holds: where its length is the same, one sector was written or not.

        Of what was appended any part is lost, of what was synced before it nothing.
        """
        if not self.takes:
            return now
        least = synced or b""
        if least == now or self.chance is None:
            return least
        if len(least) == len(now):
            return self.chance.choice((least, now))
        kept = least if now.startswith(least) else b""
        tail = now[len(kept) :]
        some = tail[: self.chance.randrange(len(tail) + 1)]
        return self.chance.choice((least, kept + some, kept + bytes(len(tail)), now))


@dataclass(frozen=True)
class Image:
    """Writes what a kill or a loss of power leaves of a home. copies: of each inode."""

    synced: Synced
    loss: Loss
    copies: dict[int, Path] = field(default_factory=dict)

    def write(self, home: Path, target: Path) -> None:
        """`target` is the home then; it is not made where nothing is left."""
        now = self.synced.hold(str(home)) if home.is_dir() else None
        number = self.loss.entry(self.synced.number(home), now)
        if number is not None:
            self._write(number, target, is_home=True)

    def _write(self, number: int, target: Path, *, is_home: bool = False) -> None:
        place = self.synced.place(number)
        mode = Path(place).stat().st_mode & 0o7777
        first = self.copies.setdefault(number, target)
        # A folder under two names, as a cut in a rename may leave it, is written twice.
        if os.path.isdir(place):  # noqa: PTH112 - as the kernel names it
            target.mkdir()
            for name, entry in self._entries(number, place, is_home=is_home).items():
                self._write(entry, target / name)
        elif first is not target:
            target.hardlink_to(first)
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


class WatchedDisk:
    """What this process does below the folder that a home is in."""

    def __init__(self, home: Path, known: Path | None = None) -> None:
        """Look at what is there.

        Args:
            home: its folder, which may be missing; the folder that it is in was synced long ago.
            known: what an earlier process had seen synced (`remember`); without it, all was.
        """
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._home = home
        self._synced = Synced(home.parent)
        self._store = home / "store"
        self._named: set[str] = set()
        self._cuts: dict[int, Path] = {}
        self._seed = 0
        # Threads write at the same time: what one does for itself hides nothing of another's.
        self._lock = threading.RLock()
        self._apart_thread: int | None = None
        self.count = 0
        if known is not None:
            self._recall(known)

    def cut_at(self, points: Collection[int], images: Path, seed: int) -> None:
        """Before these operations, write what a loss of power would leave into folders of `images`.

        Of about a half all that was not synced is lost, of the others a part, by the seed.
        """
        self._cuts = {point: images / str(point) for point in points}
        self._seed = seed

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, partial(self._called, name, getattr(os, name)))
        trees._exchange = partial(self._called, "", trees._exchange)
        event.listen(Engine, "commit", self._before_commit)

    def leave_image(self, target: Path, known: Path) -> None:
        """Write what a kill would leave now, and what of that was synced: see `known`."""
        synced = self._synced
        image = Image(synced, Loss(takes=False))
        with self._apart():
            target.parent.mkdir(parents=True, exist_ok=True)
            image.write(self._home, target)
            copies = {number: path.stat().st_ino for number, path in image.copies.items()}
            root = synced.root.stat().st_ino
            copies[root] = root
            files = {copies[one]: synced.files[one] for one in synced.files.keys() & copies.keys()}
            folders = {
                copies[one]: {
                    name: copies[each]
                    for name, each in synced.folders[one].items()
                    if each in copies
                }
                for one in synced.folders.keys() & copies.keys()
            }
            known.write_bytes(pickle.dumps((files, folders)))

    def _recall(self, path: Path) -> None:
        files, folders = pickle.loads(path.read_bytes())
        is_there = self._synced.files.keys() | self._synced.folders.keys()
        self._synced.files = {one: files[one] for one in files.keys() & is_there}
        self._synced.folders = {
            one: {name: each for name, each in folders[one].items() if each in is_there}
            for one in folders.keys() & is_there
        }

    def _called(self, name: str, real: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        if self._is_away():
            return real(*arguments, **more)
        self._touch()
        done = real(*arguments, **more)
        if name in _SYNCS:
            with self._apart():
                self._synced.sync(arguments[0])
        return done

    def _before_commit(self, connection: Connection) -> None:
        if self._is_away() or not connection.get_execution_options().get("forebay_writes"):
            return
        self._touch()
        with self._apart():
            lost = list(self._lost(connection))
        if lost:
            raise AssertionError(f"a row names what is not on the disk: {', '.join(lost)}")

    def _lost(self, connection: Connection) -> Iterator[str]:
        """What the rows of a transaction name, and a loss of power would take."""
        if self._synced.number(self._home) is None:
            yield str(self._home)
        rows: Any = connection.connection.driver_connection
        for table in STORED:
            for (name,) in rows.execute(f"SELECT name FROM {table.name}"):
                if name not in self._named:
                    self._named.add(name)
                    yield from self._lost_of(self._store / name)

    def _lost_of(self, path: Path) -> Iterator[str]:
        number = self._synced.number(path)
        if number is None or number != path.stat().st_ino:
            yield f"{path} (no name)"
        elif not path.is_dir():
            if self._synced.files.get(number) != path.read_bytes():
                yield f"{path} (content)"
        elif number not in self._synced.folders:
            yield f"{path} (names in it)"
        else:
            for each in path.iterdir():
                yield from self._lost_of(each)

    def _is_away(self) -> bool:
        return self._apart_thread == threading.get_ident()

    def _touch(self) -> None:
        with self._apart():
            self.count += 1
            target = self._cuts.get(self.count)
            if target is None:
                return
            chance = random.Random(self._seed * 1_000_003 + self.count)
            loss = Loss(chance if chance.random() < 0.5 else None)
            target.parent.mkdir(parents=True, exist_ok=True)
            Image(self._synced, loss).write(self._home, target)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """What this thread does inside the block is none of the life's."""
        with self._lock:
            self._apart_thread = threading.get_ident()
            try:
                yield
            finally:
                self._apart_thread = None
