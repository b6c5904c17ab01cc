"""Locks between processes (flock), which the kernel releases however the holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.system.activities import progressed

_POLL_SECONDS = 0.01


class FileLock:
    """An exclusive lock on a file, which may hold a text about its holder."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened before `acquire`."""
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, wait_seconds: float) -> bool:
        """Take the lock; False when another process still holds it at the deadline.

        An `is_held` call in another process holds it for microseconds, so wait longer than 0 s
        where False matters.

        Raises:
            FileNotFoundError: when its folder does not exist, or is removed by the holder.
        """
        deadline = time.monotonic() + wait_seconds
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            # A holder may remove the file: a lock on the removed file is worth nothing.
            if take(descriptor, self.path):
                self._descriptor = descriptor
                return True
            os.close(descriptor)
            if time.monotonic() >= deadline:
                return False
            progressed()  # it waits for the holder, with a deadline of its own
            time.sleep(_POLL_SECONDS)

    @classmethod
    def inherited(cls, path: Path, descriptor: int) -> FileLock | None:
        """The lock that this process's parent held and left to it.

        None if the descriptor is not open here, or is not of this file.
        """
        lock = cls(path)
        if not _is_file(descriptor, path):
            return None
        if not _try(descriptor, fcntl.LOCK_EX):
            return None
        fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        lock._descriptor = descriptor
        return lock

    @property
    def descriptor(self) -> int:
        """What a child must inherit to hold the lock too. Only for its holder."""
        if self._descriptor is None:
            raise RuntimeError("only the holder of a lock can hand it on")
        return self._descriptor

    def leave(self) -> None:
        """Stop holding it; it stays locked as long as a child that inherited it is alive."""
        os.close(self.descriptor)
        self._descriptor = None

    def write(self, text: str) -> None:
        """Record who holds the lock, for others to read. Only for its holder."""
        if self._descriptor is None:
            raise RuntimeError("only the holder of a lock can write into it")
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def release(self) -> None:
        """Release the lock; no effect if it is not held."""
        if self._descriptor is None:
            return
        # Unlocked explicitly, not by closing: a process forked meanwhile has a copy of it open.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
        self._descriptor = None


def take(descriptor: int, path: Path) -> bool:
    """Lock an open file; False if another process holds it, or the path is another file now."""
    return _try(descriptor, fcntl.LOCK_EX) and _is_file(descriptor, path)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if not _try(descriptor, fcntl.LOCK_SH):
            return True
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        return False
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, wait_seconds: float) -> Iterator[None]:
    """Hold the lock inside the block.

    Raises:
        InfrastructureError: when another process still holds it at the deadline.
    """
    lock = FileLock(path)
    if not lock.acquire(wait_seconds):
        raise InfrastructureError(f"{path} has been locked for {wait_seconds:g} s: try again")
    try:
        yield
    finally:
        lock.release()


def _is_file(descriptor: int, path: Path) -> bool:
    """Whether a descriptor is open, and of the file that has this path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
