"""Locks between processes (flock), which the kernel releases however the holder dies."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.system.liveness import progressed, waiting

_POLL_SECONDS = 0.01


@contextmanager
def closed_after(descriptor: int) -> Iterator[int]:
    """The descriptor, which the block need not close."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class FileLock:
    """An exclusive lock on a file, which may hold a text about its holder."""

    def __init__(self, path: Path) -> None:
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
        if not _is_file(descriptor, path) or not _try(descriptor, fcntl.LOCK_EX):
            return None
        fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        lock = cls(path)
        lock._descriptor = descriptor
        return lock

    @property
    def descriptor(self) -> int:
        """What a child must inherit to hold the lock too. Only for its holder."""
        if self._descriptor is None:
            raise RuntimeError("only the holder of a lock can hand it on")
        return self._descriptor

    def shared(self) -> FileLock:
        """One more holder in this process: whoever releases it first does so for both."""
        other = FileLock(self.path)
        other._descriptor = os.dup(self.descriptor)
        return other

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
    with (
        suppress(FileNotFoundError),
        closed_after(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as descriptor,
    ):
        if not _try(descriptor, fcntl.LOCK_SH):
            return True
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


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
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _try(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


# `flock` keeps no order. When a holder lets go, the kernel only wakes the next one, and whoever
# asks before that one gets a processor takes the lock; the woken one is then the last in line. On a
# busy machine some wait ten times as long as others.
#
# Here each has a number, one higher than the last, which the file tells. It locks the byte at its
# number, and its turn comes when nobody holds an earlier one. The kernel releases the byte of
# whoever dies; whoever is stopped while it waits holds up those behind it, as a stopped holder
# does.

# The last number is in the first bytes. It begins anew before it is too high to be locked or told.
_NUMBER_BYTES = 6
_NUMBER_MAX = (1 << 8 * _NUMBER_BYTES) - 1
_FIRST_OFFSET = _NUMBER_BYTES
# struct flock of 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid.
_FLOCK = "hhqqi4x"


class TurnLock:
    """An exclusive lock on a file, in order of arrival: nobody is overtaken.

    It excludes other threads of this process too. Where the kernel has no locks that belong to an
    open file (fcntl(2), F_OFD_SETLK), it still excludes, but in no order.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place: _Place | None = None

    def acquire(self, wait_seconds: float) -> bool:
        """Take the lock; False when it was not this one's turn before the deadline.

        A thread waits in the kernel, because that wait cannot have a deadline.

        Raises:
            OSError: when the file cannot be opened, locked or written.
        """
        place = _Place(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            come = place.come(wait=False)
        except BaseException:
            place.close()
            raise
        if not come and not _Waiter(place).wait(wait_seconds):
            return False
        self._place = place
        return True

    def release(self) -> None:
        """Let the next one take it; no effect if it is not held."""
        if self._place is not None:
            self._place.close()
        self._place = None


class _Place:
    """A place in line at an open file, which nobody else uses."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._offset: int | None = None

    def come(self, *, wait: bool) -> bool:
        """Get in line, and say whether everyone before has left; waiting for that, or not."""
        try:
            return self._stand(wait=wait)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        if wait:  # in no order
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return wait or _try(self._descriptor, fcntl.LOCK_EX)

    def leave(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        try:
            self._lock(fcntl.F_UNLCK, _FIRST_OFFSET, 0)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def close(self) -> None:
        """Leave. It is not enough to close: a process forked meanwhile has a copy of it open."""
        try:
            self.leave()
        finally:
            os.close(self._descriptor)

    def _stand(self, *, wait: bool) -> bool:
        if self._offset is None:
            self._offset = self._new_offset(wait=wait)
        if self._offset is None:
            return False
        if wait:  # for its neighbour first, so that not all of the line wake when one leaves
            self._lock(fcntl.F_RDLCK, self._offset - 1, 1, wait=True)
        return self._lock(fcntl.F_RDLCK, _FIRST_OFFSET, self._offset - _FIRST_OFFSET, wait=wait)

    def _new_offset(self, *, wait: bool) -> int | None:
        if not self._lock(fcntl.F_WRLCK, 0, 1, wait=wait):
            return None
        try:
            last = int.from_bytes(os.pread(self._descriptor, _NUMBER_BYTES, 0), "little")
            number = last % _NUMBER_MAX + 1
            # Locked before it is told, so that nobody with a higher one can miss it.
            self._lock(fcntl.F_WRLCK, _FIRST_OFFSET + number, 1)
            os.pwrite(self._descriptor, number.to_bytes(_NUMBER_BYTES, "little"), 0)
        finally:
            self._lock(fcntl.F_UNLCK, 0, 1)
        return _FIRST_OFFSET + number

    def _lock(self, kind: int, offset: int, length: int, *, wait: bool = False) -> bool:
        command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        asked = struct.pack(_FLOCK, kind, os.SEEK_SET, offset, length, 0)
        with suppress(BlockingIOError, PermissionError):  # EAGAIN or EACCES: somebody holds it
            fcntl.fcntl(self._descriptor, command, asked)
            return True
        return False


class _Waiter:
    """Waits in a thread until the turn of a place comes, and closes it if that is too late."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._state = threading.Condition()
        self._ended = self._given_up = False
        self._error: OSError | None = None

    def wait(self, seconds: float) -> bool:
        """Whether the turn came in time."""
        try:
            threading.Thread(target=self._wait, name="turn", daemon=True).start()
        except BaseException:
            self._place.close()
            raise
        with waiting(), self._state:
            try:
                self._state.wait_for(lambda: self._ended, seconds)
            finally:
                if not self._ended:
                    self._given_up = True
                    self._place.leave()  # at once: those behind do not wait for it
        if self._error is not None:
            self._place.close()
            raise self._error
        return self._ended

    def _wait(self) -> None:
        error = None
        try:
            self._place.come(wait=True)
        except OSError as raised:
            error = raised
        with self._state:
            if self._given_up:
                self._place.close()
                return
            self._error, self._ended = error, True
            self._state.notify()
