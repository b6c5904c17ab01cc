"""A socket in a folder that only its user may enter; whoever can connect is that user.

The path of a socket may have 107 bytes, and FOREBAY_HOME may be deep: both ends reach it through a
descriptor of the folder.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from forebay.system.files.durable import open_private
from forebay.system.files.locks import FileLock, closed_after

_PRIVATE = 0o700
_NAME, _LOCK_NAME = "socket", "lock"
_WAITING_MAX = 64


@contextmanager
def listening(folder: Path, seconds: float) -> Iterator[socket.socket | None]:
    """The one listener of a folder, which is made; None if another stays for so many seconds.

    The socket keeps messages apart, and neither end waits for the other longer than it says.

    Raises:
        OSError, InfrastructureError: when the folder cannot be made, or is open to others.
    """
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    lock = lock_of(folder)
    if not lock.acquire(seconds):
        yield None
        return
    try:
        with _path(folder) as path, closing(_made()) as here:
            path.unlink(missing_ok=True)
            here.bind(str(path))
            here.listen(_WAITING_MAX)
            bound = inode_of(path)
            try:
                yield here
            finally:
                if inode_of(path) == bound:  # of another one it is not ours to remove
                    path.unlink(missing_ok=True)
    finally:
        lock.release()


def connected(folder: Path, seconds: float) -> socket.socket:
    """A connection to the listener of a folder. seconds: the most that a call of it may wait.

    Raises:
        OSError: when there is none.
        InfrastructureError: when the folder is open to others.
    """
    there = _made()
    try:
        there.settimeout(seconds)
        with _path(folder) as path:
            there.connect(str(path))
    except BaseException:
        there.close()
        raise
    return there


def inode_of(path: Path) -> tuple[int, int] | None:
    """Which file has this name now; None where there is none."""
    try:
        info = path.lstat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def socket_of(folder: Path) -> Path:
    return folder / _NAME


def lock_of(folder: Path) -> FileLock:
    """What a listener holds."""
    return FileLock(folder / _LOCK_NAME)


@contextmanager
def _path(folder: Path) -> Iterator[Path]:
    with closed_after(open_private(folder)) as descriptor:
        yield Path(f"/proc/self/fd/{descriptor}/{_NAME}")


def _made() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
