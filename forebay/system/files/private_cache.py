"""Caches what is expensive to make, privately for one user, and makes it again if it is damaged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.system.files.durable import PRIVATE, PRIVATE_FOLDER, make_folder, open_private, writing
from forebay.system.files.locks import closed_after, locked

_DIGEST_BYTES = hashlib.sha256().digest_size
_KEPT = 8  # files of one folder; several versions may be in use at a time


def cache_folder(environ: Mapping[str, str], name: str) -> Path | None:
    """A folder in the user's cache; None if the user has no home."""
    if stated := environ.get("XDG_CACHE_HOME"):
        return Path(stated) / "forebay" / name
    if home := environ.get("HOME"):
        return Path(home) / ".cache" / "forebay" / name
    return None


def cached(folder: Path, name: str, make: Callable[[], bytes], wait_seconds: float) -> bytes:
    """The file's content; if it is missing or damaged, what `make` returns, which is then stored.

    Processes that need it at the same time wait for the one that makes it.

    Raises:
        InfrastructureError: when another user may enter the folder, or it cannot be written.
    """
    make_folder(folder, PRIVATE_FOLDER)
    try:
        opened = open_private(folder)
    except OSError as error:
        raise InfrastructureError(f"{folder}: {error}: remove it and run again") from error
    with closed_after(opened) as descriptor:
        if (found := _read(descriptor, name)) is not None:
            return found
        with locked(folder / f"{name}.lock", wait_seconds):
            if (found := _read(descriptor, name)) is not None:
                return found
            content = make()
            with writing(folder / name):
                _write(descriptor, name, content)
                _remove_oldest(descriptor)
            return content


def _read(descriptor: int, name: str) -> bytes | None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
    except OSError:
        return None
    with os.fdopen(file, "rb") as stream:
        stored = stream.read()
    digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def _write(descriptor: int, name: str, content: bytes) -> None:
    """Write beside its place first: nobody reads a half-written file."""
    beside = f"{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(beside, flags, PRIVATE, dir_fd=descriptor), "wb") as stream:
        stream.write(hashlib.sha256(content).digest() + content)
    os.replace(beside, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)


def _remove_oldest(descriptor: int) -> None:
    names = os.listdir(descriptor)
    ages = {name: os.stat(name, dir_fd=descriptor).st_mtime_ns for name in names}
    for name in sorted(names, key=ages.__getitem__)[: -2 * _KEPT]:  # each has its lock beside it
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=descriptor)
