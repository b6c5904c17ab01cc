"""Durable files: replaced whole or not at all, and logs that lose at most their tail.

Everything that Forebay keeps is written through here and `forebay.system.files.trees`. On return
both the content and the folder entries that lead to it are on disk. An error of the disk becomes an
InfrastructureError that names the place.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from forebay.errors import DataError, InfrastructureError
from forebay.system.files.locks import closed_after, take
from forebay.system.liveness import progressed

# The kernel releases a lock (flock) when its holder dies, however it dies: a file that nobody has
# locked is a leftover. Whoever removes a leftover holds its lock meanwhile, and a writer, once it
# has locked its new file, checks whether the file is still there: nobody removes what another
# process is writing.

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
    with closed_after(descriptor):
        is_left = take(descriptor, path)
        if is_left:
            path.unlink(missing_ok=True)
        return is_left


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
    with closed_after(descriptor):
        yield take(descriptor, path)


def _opened(path: Path) -> int:
    # For writing: NFS requires it for an exclusive lock.
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
_SHARED, _SHARED_FOLDER = 0o666, 0o777  # less what the umask of the process takes away
# Files and folders whose names this process knows to be on disk, with device and inode.
_named: dict[Path, tuple[int, int]] = {}
_NAMED_MAX = 4096
# Read and written at a time, so that a large file shows progress to whoever watches.
_PART_BYTES = 4 << 20
_WAYS_OUT = {
    errno.ENOSPC: ": free some space and run again",
    errno.EDQUOT: ": free some space, or ask for a larger quota, and run again",
    errno.EACCES: ": make it accessible to this user",
    errno.EPERM: ": make it accessible to this user",
    errno.EROFS: ": make the file system writable, or use another one",
    errno.EIO: ": check the disk and run again",
    errno.ENOLCK: ": use a file system that supports locks",
    errno.ENOSYS: ": use a file system that supports locks",
}


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn errors of the disk inside the block into our own, with the place and what to do."""
    try:
        yield
    except OSError as error:
        way_out = _WAYS_OUT.get(error.errno or 0, "")
        raise InfrastructureError(f"{place}: {error}{way_out}") from error


def sync(path: Path) -> None:
    """Make a file's content durable, or the creations, renames and removals inside a folder."""
    with writing(path), closed_after(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
        os.fsync(descriptor)
    progressed()


def make_folder(folder: Path, mode: int = _SHARED_FOLDER) -> None:
    """Create a folder and its missing parents; its name is then on disk, whoever created it.

    mode: only of this folder, less the umask; an existing folder keeps its own.
    """
    with writing(folder):
        if folder.is_dir():
            sync_name(folder)
            return
        make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync(folder.parent)
        _remember(folder)


def sync_name(path: Path) -> None:
    """Make the existence of a file or folder durable, and of all folders above it.

    Whoever created one of them may not have synced it yet, or may have died before that. A process
    does this once for each, up to a folder that it cannot write to, or one on another file system.
    """
    found = _inode(path)
    if _named.get(path) == found:
        return
    above = path.parent
    if above != path and _inode(above)[0] == found[0] and os.access(above, os.W_OK):
        sync_name(above)
        sync(above)
    _remember(path)


def _remember(path: Path) -> None:
    if len(_named) >= _NAMED_MAX:
        _named.clear()
    _named[path] = _inode(path)


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


@contextmanager
def new_file(path: Path, mode: int = _SHARED) -> Iterator[BinaryIO]:
    """A file that replaces `path` at the end of the block; after an error the old one stays.

    A reader, and a restart after a crash, sees either the old or the new content. Missing folders
    are created. The mode applies from the moment that the file exists. What a killed process leaves
    is removed by the next writer of the same file, or by `forebay gc`.
    """
    with writing(path):
        make_folder(path.parent)
        unfinished, descriptor = begin_beside(path, mode)
        with os.fdopen(descriptor, "wb") as stream:
            try:
                yield stream
                stream.flush()
                os.fsync(descriptor)
                unfinished.replace(path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
        sync(path.parent)


def write_atomically(path: Path, content: str | bytes, mode: int = _SHARED) -> None:
    """Replace a file with one with this content; see `new_file`."""
    with new_file(path, mode) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def write_private(path: Path, content: str | bytes) -> None:
    """`write_atomically` for secrets: at no moment can another user read them."""
    write_atomically(path, content, PRIVATE)


def append_lines(path: Path, lines: str) -> None:
    """Append whole lines; the torn last line of a process that died stays a line of its own."""
    with writing(path):
        make_folder(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with closed_after(os.open(path, flags, _SHARED)) as descriptor:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            content = (b"\n" if torn else b"") + lines.encode()
            while content:
                content = content[os.write(descriptor, content) :]
            os.fsync(descriptor)
        if size:
            sync_name(path)
        else:
            sync(path.parent)


def read_lines(path: Path) -> list[str]:
    """The lines of a log; none if it does not exist."""
    if not path.is_file():
        return []
    return path.read_bytes().decode("utf-8", errors="replace").splitlines()


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Parse a JSON file that `write_atomically` wrote.

    Raises:
        DataError: when the file exists but is not JSON.
    """
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): move it away and run again") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        for part in _parts(stream):
            found.update(part)
    return found.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's content; an existing target is overwritten. It is not synced.

    Users who may not read the source may not read the copy.
    """
    with source.open("rb") as stream:
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, mode | stat.S_IWUSR), "wb") as copy:
            copy.writelines(_parts(stream))


def folder_checksums(folder: Path) -> dict[str, str]:
    """Checksums of all files below a folder, by relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    while part := stream.read(_PART_BYTES):
        yield part
        progressed()


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
