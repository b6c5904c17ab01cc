"""Tokens, which every socket of a job requires. Never in an argument, environment or log.

Each process makes its own when it starts to listen. It is not valid for any other process, nor for
the next one of the same role.
"""

from __future__ import annotations

import hmac
import os
import secrets

from forebay.errors import InfrastructureError
from forebay.system.files.durable import PRIVATE

HEADER = "authorization"
_SCHEME = "Bearer "
_BYTES = 32
_SHORTEST = 16
_SUFFIX = ".token"
_READ_MAX = 4096


def new_token() -> str:
    return secrets.token_urlsafe(_BYTES)


def write_token(folder: int, name: str, token: str) -> None:
    """Store the token of a socket beside it, for this user only; `folder` is a descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name + _SUFFIX, flags, PRIVATE, dir_fd=folder), "wb") as file:
        file.write(token.encode())


def read_token(folder: int, name: str) -> str:
    """The token of a socket.

    Raises:
        OSError: when its process is gone.
        InfrastructureError: when the file is too short to keep strangers out.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name + _SUFFIX, flags, dir_fd=folder), "rb") as file:
        token = file.read(_READ_MAX).decode()
    if len(token) < _SHORTEST:
        raise InfrastructureError(f"{name}{_SUFFIX} holds no token")
    return token


def bearer(token: str) -> str:
    return _SCHEME + token


def is_allowed(header: str | bytes | None, token: str) -> bool:
    """Whether a header carries the token, in constant time."""
    if header is None:
        return False
    shown = header if isinstance(header, bytes) else header.encode()
    return hmac.compare_digest(shown, bearer(token).encode())
