"""YAML files as bytes and as text: bounded in size, and read without ever blocking.

A pipe, a device, a broken link or an oversized file in a folder of declarations is a problem with a
file name and position, and no command waits for it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from forebay.config.yaml.problems import Problem

SUFFIXES = (".yaml", ".yml")
# Any file of this size can be processed within a second, whatever its content.
BYTES_MAX = 2**20
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def yaml_files(folder: Path) -> tuple[list[Path], list[Problem]]:
    """What looks like a declaration in a folder, sorted by name, and problems of the folder.

    Editors keep broken links beside files that they have open, with a dot before the name.
    """
    try:
        with os.scandir(folder) as found:
            names = sorted(
                entry.name
                for entry in found
                if entry.name.endswith(SUFFIXES)
                and not (entry.name.startswith(".") and not entry.is_file())
            )
    except FileNotFoundError:
        return [], []
    except OSError as error:
        message = f"the folder cannot be read: {error.strerror}"
        return [], [Problem(str(folder), 1, 1, "unreadable", message)]
    return [folder / name for name in names], []


def read_bytes(path: Path) -> bytes:
    """The content of a file of at most BYTES_MAX.

    Raises:
        OSError: when it is not a file, cannot be read, or is too large; the message says which.
    """
    # Without O_NONBLOCK, opening a pipe blocks until another process writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is a folder, pipe, socket or device, not a file: move it away")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(BYTES_MAX + 1) or b""
    finally:
        os.close(descriptor)
    if len(content) > BYTES_MAX:
        raise OSError(
            f"it has more than {BYTES_MAX:,} bytes: split it into several sources or pipelines, "
            "and use hash for features with so many values"
        )
    return content


def read_text(path: Path) -> tuple[str, list[Problem]]:
    try:
        content = read_bytes(path)
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        return "", [Problem(str(path), 1, 1, "unreadable", message)]
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        return "", [_not_utf_8(path, content, error)]


def _not_utf_8(path: Path, content: bytes, error: UnicodeDecodeError) -> Problem:
    if content.startswith(_UTF_16):
        message = "the file is UTF-16: save it as UTF-8"
        return Problem(str(path), 1, 1, "unreadable", message)
    line_start = content.rfind(b"\n", 0, error.start) + 1
    line = content.count(b"\n", 0, error.start) + 1
    column = len(content[line_start : error.start].decode("utf-8", "replace")) + 1
    message = f"byte 0x{content[error.start]:02x} is not UTF-8: save the file as UTF-8"
    return Problem(str(path), line, column, "unreadable", message)
