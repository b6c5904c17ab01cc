"""TCP ports of this machine: free ones, and one to keep."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

from forebay.errors import InfrastructureError

LOOPBACK = "127.0.0.1"


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


def free_ports(*wanted: int) -> list[int]:
    """Different ports: each `wanted` one if it is free, so that addresses stay; else any free one.

    All are held until the last is found: one that is released could be handed out again.
    """
    with ExitStack() as held:
        return [_hold_free_port(each, held) for each in wanted]


def _hold_free_port(wanted: int, held: ExitStack) -> int:
    for port in (wanted, 0):
        probe = held.enter_context(socket.socket())
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError:
            continue
        return int(probe.getsockname()[1])
    raise InfrastructureError("no free port on the loopback interface")
