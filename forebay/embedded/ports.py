"""TCP ports of this machine: whether one is free, and one to keep."""

from __future__ import annotations

import socket
from contextlib import suppress

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the API server does: connections of an earlier server that linger do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def keep_port(preferred: int | None) -> socket.socket:
    """A socket that listens: on the preferred port where it is free, or on any free one.

    Whoever answers there may end and come again. As long as the caller keeps the socket nobody else
    can listen in between, and be shown the passwords and tokens that are sent to this port.

    Raises:
        OSError: when there is no loopback interface, or no free port.
    """
    if preferred is not None:
        with suppress(OSError):
            return socket.create_server((LOOPBACK, preferred))
    return socket.create_server((LOOPBACK, 0))


def choose_port(preferred: int | None) -> int:
    """The preferred port where it is free, or any free one."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
