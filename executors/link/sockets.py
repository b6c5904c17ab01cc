"""Where the processes of a job on one host listen: Unix sockets in the job's own folder.

The one module that knows how to bind and how to dial. An address is a text in messages and files;
the token that its server wants is in a file beside the socket. Planes with several hosts will have
addresses with another scheme, which are bound and dialled here too.

The path of a socket may have 107 bytes, and FOREBAY_HOME may be deep. So both sides open the
folder, check that no other user may enter it, and reach the socket through that descriptor: nothing
is outside the job's folder, and no name can be swapped in between.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from forebay.errors import InfrastructureError
from forebay.executors.link.tokens import new_token, read_token, write_token
from forebay.system.files.durable import open_private, writing

_SCHEME = "unix:"
_NAME = re.compile(r"[a-z]+-[0-9]+\.[0-9a-f]{16}")
_PRIVATE = 0o700


class JobSocket:
    """One end of a socket. Keep it until the server has stopped, or the connection is closed."""

    def __init__(self, descriptor: int, name: str, token: str) -> None:
        """Own `descriptor`, of the folder with the socket. `path` is valid in this process only."""
        self.address = f"{_SCHEME}{name}"
        self.token = token
        self.path = f"/proc/self/fd/{descriptor}/{name}"
        self._descriptor: int | None = descriptor
        self._lock = threading.Lock()

    @property
    def grpc_target(self) -> str:
        return f"unix:{self.path}"

    @property
    def flight_location(self) -> str:
        return f"grpc+unix://{self.path}"

    def close(self) -> None:
        """Close the descriptor; the socket stays where it is."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def listen(folder: Path, role: str, index: int) -> JobSocket:
    """A new address with a new token, for a process that is about to listen there.

    Addresses of earlier processes with this role and index are removed.

    Raises:
        InfrastructureError: when the folder is open to others, or cannot hold a socket.
    """
    name = f"{role}-{index}.{secrets.token_hex(8)}"
    with writing(folder):
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
        descriptor = open_private(folder)
        try:
            for old in folder.glob(f"{role}-{index}.*"):
                os.unlink(old.name, dir_fd=descriptor)
            _require_sockets(folder, descriptor, name)
            token = new_token()
            write_token(descriptor, name, token)
        except BaseException:
            os.close(descriptor)
            raise
    return JobSocket(descriptor, name, token)


def dial(folder: Path, address: str) -> JobSocket:
    """The socket of an address, and the token that its server wants.

    Raises:
        OSError: when the process that listened there is gone and another took its place.
        InfrastructureError: when the folder is open to others, or this is not an address.
    """
    name = address.removeprefix(_SCHEME)
    if not address.startswith(_SCHEME) or not _NAME.fullmatch(name):
        raise InfrastructureError(f"{address!r} is not an address of a job's process")
    descriptor = open_private(folder)
    try:
        return JobSocket(descriptor, name, read_token(descriptor, name))
    except BaseException:
        os.close(descriptor)
        raise


def sockets_problem(folder: Path) -> str:
    """Why the jobs below a folder could not listen there; an empty text if they can.

    This is tried in a temporary folder in the same way as jobs do it: with a path that stays short.
    """
    try:
        with TemporaryDirectory(prefix=".forebay-", dir=folder) as made:
            descriptor = open_private(Path(made))
            try:
                _require_sockets(folder, descriptor, "probe")
            finally:
                os.close(descriptor)
    except (OSError, InfrastructureError) as error:
        return str(error)
    return ""


def _require_sockets(folder: Path, descriptor: int, name: str) -> None:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.bind(f"/proc/self/fd/{descriptor}/{name}")
        os.unlink(name, dir_fd=descriptor)
    except OSError as error:
        raise InfrastructureError(
            f"{folder}: a Unix socket cannot be created here ({error}): put FOREBAY_HOME on a "
            "local file system"
        ) from error
