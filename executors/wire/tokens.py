"""The job's token: what every port of ours wants to see. Never in argv, never in a log."""

from __future__ import annotations

import hmac
from pathlib import Path

from forebay.errors import InfrastructureError

HEADER = "authorization"
_SCHEME = "Bearer "
_SHORTEST = 16


def read_token(job_dir: Path) -> str:
    """The token of a job, from its file that only the owner may read.

    Raises:
        InfrastructureError: when the file is missing, or too short to keep strangers out.
    """
    try:
        token = (job_dir / "token").read_text().strip()
    except OSError as error:
        raise InfrastructureError(f"the job's token cannot be read: {error}") from error
    if len(token) < _SHORTEST:
        raise InfrastructureError(f"{job_dir / 'token'} holds no token")
    return token


def bearer(token: str) -> str:
    """The header's value for a token."""
    return _SCHEME + token


def is_allowed(header: str | bytes | None, token: str) -> bool:
    """Whether a header carries the token, in constant time."""
    if header is None:
        return False
    shown = header if isinstance(header, bytes) else header.encode()
    return hmac.compare_digest(shown, bearer(token).encode())
