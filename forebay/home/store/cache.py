"""Local copies of what an object store holds: fetched once, verified at each use, bounded.

A copy is fetched under a lock and gets its name once it is verified: processes that want it at the
same time fetch it once, and one that dies leaves nothing that another could take for a copy.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from forebay.errors import DataError
from forebay.home.store.base import TREE_SUFFIX
from forebay.system.files.durable import PRIVATE_FOLDER, make_folder, writing
from forebay.system.files.locks import FileLock, locked

LIMIT_BYTES = 20 << 30
# Whoever asked for a copy reads it within this time, so it is kept that long, whatever the limit.
KEPT_SECONDS = 3600.0
_LOCK_SECONDS = 1800.0
_UNFINISHED_NAME, _LOCKS_NAME = ".writing", ".locks"
_ID_DIGITS = 2  # of a name's id: how many locks there are


class StoreCache:
    """Copies below one folder, by the last part of their names, which is used once."""

    def __init__(self, root: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._root = root
        self._limit_bytes = limit_bytes

    def copy(
        self, name: str, verify: Callable[[Path], object], fetch: Callable[[Path], None]
    ) -> Path:
        """A verified copy; a damaged one is replaced.

        verify: raises DataError when a copy is not as it should be.
        fetch: creates a file or folder at the path that it is given, where nothing exists yet.

        Raises:
            DataError: when what was fetched is not as it should be, either.
            InfrastructureError: when it cannot be written, or another process takes too long to
                fetch it.
        """
        leaf = name.rpartition("/")[2]
        place, unfinished = self._root / leaf, self._root / _UNFINISHED_NAME / leaf
        with writing(place):
            make_folder(self._root, PRIVATE_FOLDER)  # copies have no modes of their own
            make_folder(unfinished.parent)
            make_folder(self._root / _LOCKS_NAME)
            with locked(self._lock(leaf), _LOCK_SECONDS):
                if _is_good(place, verify):
                    return place
                for left in (place, unfinished):  # damaged, or of a process that died
                    _remove(left)
                try:
                    fetch(unfinished)
                    verify(unfinished)
                    unfinished.touch()  # used now, whatever time its bytes came with
                    unfinished.rename(place)
                finally:
                    _remove(unfinished)
            self._evict()
        return place

    def _lock(self, leaf: str) -> Path:
        return self._root / _LOCKS_NAME / leaf.removesuffix(TREE_SUFFIX)[-_ID_DIGITS:]

    def _evict(self) -> None:
        """Remove the copies that were used least recently, until the rest fits."""
        found = sorted(self._copies())
        too_much = sum(size_bytes for _, _, size_bytes in found) - self._limit_bytes
        for used_at, path, size_bytes in found:
            if too_much <= 0 or used_at > time.time() - KEPT_SECONDS:
                return
            lock = FileLock(self._lock(path.name))
            if lock.acquire(0):  # otherwise somebody is fetching it, or about to
                _remove(path)
                lock.release()
                too_much -= size_bytes

    def _copies(self) -> Iterator[tuple[float, Path, int]]:
        """When each was last used, its place and its size."""
        for folder in (self._root, self._root / _UNFINISHED_NAME):
            for path in folder.iterdir():
                # What is removed meanwhile no longer takes space.
                with suppress(FileNotFoundError):
                    if not path.name.startswith("."):
                        yield path.stat().st_mtime, path, _size_bytes(path)


def _is_good(place: Path, verify: Callable[[Path], object]) -> bool:
    if not place.exists():
        return False
    place.touch()  # used now
    with suppress(DataError):
        verify(place)
        return True
    return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _size_bytes(path: Path) -> int:
    return sum(each.lstat().st_size for each in (path, *path.rglob("*")))
