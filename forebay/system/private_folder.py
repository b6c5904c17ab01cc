"""Folders that only one user may enter, opened so that no name can be swapped in between."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from forebay.errors import InfrastructureError

_OTHERS = 0o077


def open_private(folder: Path) -> int:
    """A descriptor of a folder that this user owns, and that no other user may enter.

    Never of the target of a link.

    Raises:
        OSError: when it does not exist, or is a link.
        InfrastructureError: when it is somebody else's, or open to others.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if found.st_uid == os.geteuid() and not found.st_mode & _OTHERS:
        return descriptor
    os.close(descriptor)
    raise InfrastructureError(
        f"{folder} belongs to user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}, but "
        f"only user {os.geteuid()} may enter it: remove it and run again"
    )
