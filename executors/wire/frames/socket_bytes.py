"""Whole messages in and out of a socket, with a bound on every wait in the middle of one."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence

import pyarrow as pa

from forebay.executors.wire.limits import STALL_SECONDS

# What one call may take (IOV_MAX).
_PARTS_MAX = os.sysconf("SC_IOV_MAX")
# The kernel grants as much as it may; a frame is sent in parts of this size.
_BUFFER_BYTES = 4 << 20
_TIMEVAL = struct.Struct("@ll")


def bound_waits(connection: socket.socket, seconds: float = STALL_SECONDS) -> None:
    """Let the kernel end every longer wait, so that a whole frame is one system call."""
    connection.settimeout(None)
    whole, rest = divmod(seconds, 1)
    wait = _TIMEVAL.pack(int(whole), int(rest * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, wait)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)


def connect_within(connection: socket.socket, path: str, seconds: float) -> None:
    """Connect to the listener at a path; wait while other connections are accepted before it.

    Raises:
        OSError: when nothing listens, or the connection is not accepted in time.
    """
    bound_waits(connection, seconds)
    try:
        connection.connect(path)
    except BlockingIOError:
        raise OSError(f"it accepted no connection for {seconds:g} s") from None


def receive_into(connection: socket.socket, target: memoryview, *, patient: bool = False) -> None:
    """Fill `target`. patient: wait for the first byte as long as it takes.

    Raises:
        OSError: when the connection ends before that, or nothing comes for too long.
    """
    got = 0
    while got < len(target):
        try:
            count = connection.recv_into(target[got:], 0, socket.MSG_WAITALL)
        except BlockingIOError:
            if patient and not got:
                continue
            raise OSError(f"nothing came after byte {got} of {len(target)}") from None
        if not count:
            raise OSError(f"it ended after byte {got} of {len(target)}")
        got += count


def send_parts(connection: socket.socket, parts: Sequence[bytes | pa.Buffer]) -> None:
    """Send all parts, as they are in memory.

    Raises:
        OSError: when the connection ends before that, or nothing is read for too long.
    """
    left = [memoryview(part).cast("B") for part in parts if len(part)]
    left.reverse()
    while left:
        try:
            sent = connection.sendmsg(left[: -_PARTS_MAX - 1 : -1])
        except BlockingIOError:
            raise OSError("the other side read nothing for too long") from None
        while left and sent >= len(left[-1]):
            sent -= len(left.pop())
        if sent:
            left[-1] = left[-1][sent:]
