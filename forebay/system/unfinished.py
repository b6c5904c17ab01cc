"""Files that are being written: each under a name of its own, locked by its writer.

The kernel releases a lock (flock) when its holder dies, however it dies: a file that nobody has
locked is a leftover. Whoever removes a leftover holds its lock meanwhile, and a writer, once it has
locked its new file, checks whether the file is still there: nobody removes what another process is
writing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.system.locks import take

_SUFFIX = ".unfinished"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def is_unfinished(name: str) -> bool:
    """Whether `begin_beside` gives files such names."""
    return name.startswith(".") and name.endswith(_SUFFIX)


def begin_beside(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the one that it will replace, and its descriptor: see `begin`.

    Its name is the first one that no living writer uses. So the next writer of the same file
    removes what the last one left when it died, and nobody has to search for it.
    """
    number = 0
    while True:
        unfinished = path.with_name(f".{path.name}.{number}{_SUFFIX}")
        descriptor = begin(unfinished, mode)
        if descriptor is not None:
            return unfinished, descriptor
        number += 1


def begin(path: Path, mode: int) -> int | None:
    """The descriptor of a new file, locked, which the caller closes once it has another name.

    A leftover of this name is removed. None if a living process is writing or removing it.
    """
    while True:
        try:
            descriptor = os.open(path, _NEW, mode)
        except FileExistsError:
            if not remove_left(path):
                return None
            continue
        taken = False
        try:
            taken = take(descriptor, path)
        finally:
            if not taken:
                os.close(descriptor)
        if taken:
            return descriptor


def remove_left(path: Path) -> bool:
    """Remove a file that was begun and is no longer written; False if its writer is alive."""
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        return True  # a file of this name that exists by now is a newer one
    try:
        is_left = take(descriptor, path)
        if is_left:
            path.unlink(missing_ok=True)
        return is_left
    finally:
        os.close(descriptor)


@contextmanager
def without_writer(path: Path) -> Iterator[bool]:
    """Whether nobody is writing a file that was begun; if so, nobody else removes it in the block.

    If there is no file, somebody may begin one meanwhile.
    """
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        descriptor = None
    if descriptor is None:
        yield True
        return
    try:
        yield take(descriptor, path)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    # For writing: NFS requires it for an exclusive lock.
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
