"""Standard streams that are closed, that nobody reads any more, or that are on a full disk.

A command does its work all the same, and what it prints then goes nowhere.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TextIO, cast

# Nobody wants what is printed: no failure.
_UNWANTED = frozenset({errno.EPIPE, errno.EBADF})


class StandardStream(io.TextIOWrapper):
    """Output that goes to the null device after the first failure to write it.

    failure: why what was printed is not all there, though somebody wanted it.
    """

    failure: OSError | None = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._turn_away(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._turn_away(error)

    def _turn_away(self, error: OSError) -> None:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), self.fileno())
        if error.errno not in _UNWANTED:
            self.failure = error


def open_standard_streams() -> StandardStream:
    """Have all three streams of this process and of its children open; returns standard output.

    Called before a file is opened: it could get the number of a closed stream otherwise, and what
    is printed would be written into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - as in os
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stderr = _lasting(sys.stderr, 2)
    sys.stdout = output = _lasting(sys.stdout, 1)
    return output


def _lasting(stream: TextIO | None, descriptor: int) -> StandardStream:
    if stream is None:
        return StandardStream(os.fdopen(descriptor, "wb", closefd=False), "utf-8", "replace")
    before = cast("io.TextIOWrapper", stream)
    # A file name may not be valid UTF-8, and printing it must not fail.
    return StandardStream(
        before.buffer,
        before.encoding,
        "backslashreplace",
        line_buffering=before.line_buffering,
        write_through=before.write_through,  # as PYTHONUNBUFFERED asks for
    )
