"""What a long command is doing: one line that changes on a terminal, plain lines elsewhere.

On a terminal the line is drawn again each second with the seconds since it changed, so that a
person sees that the command works while it imports, waits or trains a long step.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from types import TracebackType
from typing import Self, TextIO

from forebay.system.terminal import columns, fitted, printable

TICK_SECONDS = 1.0
# Between the same line with other figures, where nothing can be drawn over.
LINE_EVERY_SECONDS = 5.0
_CLEAR = "\r\x1b[2K"


class LiveLine:
    """The line, as a context: without it nothing is drawn by itself."""

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        """live: whether the stream is a terminal that a person reads."""
        self.live = live
        self._stream = stream
        self._lock = threading.Lock()
        self._text = ""
        self._changed_at = self._shown_at = 0.0
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        """Begin to draw."""
        if self.live:
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the cursor at the beginning of an empty line."""
        self._over.set()
        if self.live:
            self._ticker.join()
        self.done()

    @property
    def width(self) -> int | None:
        """Columns that a changing text may have; None where it has no end."""
        return columns() - 1 if self.live else None  # the cursor needs a place too

    def say(self, text: str) -> None:
        """A line that stays; on a terminal, what is being done is drawn below it again."""
        with self._lock:
            shown = fitted(printable(text), self._stream)
            self._write((_CLEAR if self._text and self.live else "") + shown + "\n")
            if not self.live:
                self._text = ""

    def doing(self, text: str) -> None:
        """What is done from now on; it stays where nothing can be drawn over."""
        if self.live:
            self._change(f"{text} …")
        else:
            self.say(f"{text} …")

    def figures(self, text: str) -> None:
        """How far it is; elsewhere than on a terminal only every few seconds."""
        if self.live:
            self._change(text)
        elif text != self._text and time.monotonic() - self._shown_at >= LINE_EVERY_SECONDS:
            self.say(text)
            self._text, self._shown_at = text, time.monotonic()

    def done(self) -> None:
        """Take the line away: what it said is over."""
        with self._lock:
            if self.live and self._text:
                self._write(_CLEAR)
            self._text = ""

    def _change(self, text: str) -> None:
        with self._lock:
            if text != self._text:
                self._text, self._changed_at = text, time.monotonic()
                self._write(_CLEAR + printable(text)[: self.width])

    def _tick(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            with self._lock:
                seconds = round(time.monotonic() - self._changed_at)
                if self._text and seconds:
                    since = f"  {seconds} s"
                    room = columns() - 1 - len(since)
                    self._write(_CLEAR + printable(self._text)[:room] + since)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def working(text: str) -> Iterator[LiveLine]:
    """Show on a terminal what a command does until it has something to print.

    The line is on standard error. What others write there meanwhile goes above it.

    Yields:
        The line, for notes and for what is done next. Elsewhere than on a terminal only these
        are written.
    """
    with LiveLine(sys.stderr, live=sys.stderr.isatty()) as line:
        if not line.live:
            yield line
            return
        line.doing(text)
        with redirect_stderr(_Above(line)):
            yield line


class _Above(io.TextIOBase):
    """Standard error while a line is drawn there: each whole line that is written stays."""

    def __init__(self, line: LiveLine) -> None:
        self._line = line
        self._begun = ""

    def write(self, text: str) -> int:
        """Keep a line that has not ended yet."""
        *whole, self._begun = (self._begun + text).split("\n")
        for each in whole:
            self._line.say(each)
        return len(text)
