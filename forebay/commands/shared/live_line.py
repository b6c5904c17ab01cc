"""What a long command is doing: one line that changes on a terminal, plain lines elsewhere.

On a terminal the line is redrawn every second with the seconds since it changed, so that the user
sees that the command is working while it imports, waits or trains a long step.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Self, TextIO

from forebay.system.output.text import columns, fitted, printable

TICK_SECONDS = 1.0
# Seconds between updates of the same line where it cannot be redrawn.
LINE_EVERY_SECONDS = 5.0
# The terminal shows ^C only after it has sent the signal.
ECHO_SECONDS = 0.05
_CLEAR = "\r\x1b[2K"


class LiveLine:
    """The line. It is redrawn every second only while used as a context manager."""

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        """live: whether the stream is a terminal."""
        self.live = live
        self._stream = stream
        self._lock = threading.Lock()
        self._text = ""
        self._changed_at = self._shown_at = 0.0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self.live:
            threading.Thread(target=self._tick, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._remove()

    @property
    def width(self) -> int | None:
        """Columns that a changing text may have; None if unlimited."""
        return columns() - 1 if self.live else None

    def say(self, text: str) -> None:
        """Print a line that stays; on a terminal, the changing line is redrawn below it."""
        with self._lock:
            shown = fitted(printable(text), self._stream)
            self._write((_CLEAR if self.live else "") + shown + "\n")
            if not self.live:
                self._text = ""

    def doing(self, text: str) -> None:
        """Show what is being done from now on; not on a terminal, the line stays."""
        if self.live:
            self._change(f"{text} …")
        else:
            self.say(f"{text} …")

    def figures(self, text: str) -> None:
        """Show progress; if this is not a terminal, only every few seconds."""
        if self.live:
            self._change(text)
        elif text != self._text and time.monotonic() - self._shown_at >= LINE_EVERY_SECONDS:
            self.say(text)
            self._text, self._shown_at = text, time.monotonic()

    def interrupted(self) -> None:
        """Remove the line, and the ^C that the terminal has put where the cursor is."""
        if self.live:
            time.sleep(ECHO_SECONDS)
        self._remove()

    def _remove(self) -> None:
        with self._lock:
            self._text = ""
            if self.live:
                self._write(_CLEAR)

    def _change(self, text: str) -> None:
        with self._lock:
            if text != self._text:
                self._text, self._changed_at = text, time.monotonic()
                self._draw()

    def _tick(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            with self._lock:
                if self._text:
                    self._draw()

    def _draw(self) -> None:
        seconds = round(time.monotonic() - self._changed_at)
        since = f"  {seconds} s" if seconds else ""
        room = columns() - 1 - len(since)  # the cursor needs a column too
        self._write(_CLEAR + printable(self._text)[:room] + since)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def working(text: str) -> Iterator[LiveLine]:
    """Show on a terminal what a command is doing until it has something to print.

    The line is on standard error. Anything else written there meanwhile appears above it.

    Yields:
        The line, for notes and for what is done next. If standard error is not a terminal, only
        these are written.
    """
    with LiveLine(sys.stderr, live=sys.stderr.isatty()) as line:
        if not line.live:
            yield line
            return
        line.doing(text)
        with redirect_stderr(_Above(line)):
            yield line


class _Above(io.TextIOBase):
    """Standard error while a line is drawn there: each complete line that is written stays."""

    def __init__(self, line: LiveLine) -> None:
        self._line = line
        self._begun = ""

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for each in whole:
            self._line.say(each)
        return len(text)
