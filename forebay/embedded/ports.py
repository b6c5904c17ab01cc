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
    """A listening socket: on the preferred port if it is free, otherwise on any free one.

    The server on it may end and start again. As long as the caller keeps the socket, nobody else
    can listen there in between and receive the passwords and tokens sent to this port.

    Raises:
        OSError: when there is no loopback interface, or no free port.
    """
    if preferred is not None:
        with suppress(OSError):
            return socket.create_server((LOOPBACK, preferred))
    return socket.create_server((LOOPBACK, 0))


def choose_port(preferred: int | None) -> int:
    """The preferred port if it is free, otherwise any free one."""
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
