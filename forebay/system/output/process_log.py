"""The log of a process: lines on stderr, and the stacks of its threads when it crashes."""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from forebay.system.output.redaction import filter_output


def set_up_logging(name: str) -> None:
    """Log this process to stderr, with UTC time and the process's name in each line.

    Neither the log nor anything else that it writes shows secrets. A crash in C++ or SIGUSR1 also
    writes the stacks of all threads there.
    """
    filter_output()
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(f"%(asctime)sZ %(levelname)s {name} %(name)s: %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


# Per file: the most that is searched for its last lines, and the most that one look reads.
TAIL_BYTES_MAX = 1 << 20
READ_BYTES_MAX = 1 << 18
# A longer line is returned in parts.
LINE_BYTES_MAX = 1 << 16


class LogTail:
    """One log file that a process appends to. It need not exist yet.

    A file that became shorter was rewritten: it is read from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0
        self._rest = b""

    def last(self, lines: int) -> list[str]:
        """The last lines of the file as it is now; `added` continues after them.

        At most TAIL_BYTES_MAX are read. Raises OSError when the file cannot be read.
        """
        if not self.path.is_file():
            return []
        with self.path.open("rb") as log:
            size = log.seek(0, 2)
            start = log.seek(max(0, size - TAIL_BYTES_MAX))
            data = log.read(size - start)
        self._position = start + len(data)
        *whole, self._rest = data.split(b"\n")
        if start:
            whole = whole[1:]  # the first one is only part of a line
        return [_text(line) for line in deque(whole, maxlen=lines)]

    def added(self) -> Iterator[str]:
        """Whole lines that were added since the last look, at most READ_BYTES_MAX of them.

        Raises OSError when the file cannot be read.
        """
        if not self.path.is_file():
            return
        with self.path.open("rb") as log:
            if log.seek(0, 2) < self._position:
                self._position, self._rest = 0, b""
            log.seek(self._position)
            data = log.read(READ_BYTES_MAX)
        self._position += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        yield from map(_text, whole)
        if len(self._rest) > LINE_BYTES_MAX:
            yield self.rest()

    def rest(self) -> str:
        """What was read after the last newline, when the writer is gone and will not finish it."""
        text, self._rest = _text(self._rest), b""
        return text


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r")
