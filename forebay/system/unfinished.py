"""Files that are being written: each under a name of its own, which its writer has locked.

The kernel drops a lock (flock) when its holder dies, however it dies: what nobody has locked is a
leftover. Whoever removes one holds its lock meanwhile, and a writer checks whether what it has made
is still there once it has locked it: nobody removes what another one writes.
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
    """Whether `begin_beside` names files so."""
    return name.startswith(".") and name.endswith(_SUFFIX)


def begin_beside(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the one that it is to replace, and its descriptor: see `begin`.

    Its name is the first one that no living writer has. So whoever writes the same file next
    removes what the last one left when it died, and nobody has to look for it.
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

    A leftover of this name is removed. None where a living process writes or removes it.
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
    """Remove a file that was begun and is not written any more; False where its writer lives."""
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        return True  # whoever has this name by now has begun a file since
    try:
        is_left = take(descriptor, path)
        if is_left:
            path.unlink(missing_ok=True)
        return is_left
    finally:
        os.close(descriptor)


@contextmanager
def without_writer(path: Path) -> Iterator[bool]:
    """Whether nobody writes a file that was begun; in the block nobody else removes it then.

    Where no file is, nothing keeps anybody from beginning one meanwhile.
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
    # For writing: NFS gives no other lock of one holder.
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
