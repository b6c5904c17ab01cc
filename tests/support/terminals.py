"""Commands in a pseudo-terminal of 80 columns: what a person sees, and when."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

COLUMNS, ROWS = 80, 24
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_WIDE = {"W", "F"}


@dataclass
class Capture:
    """What a command wrote. chunks: seconds since its start, and text."""

    chunks: list[tuple[float, str]] = field(default_factory=list)
    exit_code: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """Everything, as it was written."""
        return "".join(text for _, text in self.chunks)

    @property
    def drawn(self) -> list[str]:
        """Each line that was ever drawn: those that were drawn over too."""
        return [
            _CONTROL.sub("", part).rstrip()
            for line in self.text.replace("\r\n", "\n").split("\n")
            for part in line.split("\r")
        ]

    @property
    def lines(self) -> list[str]:
        """The lines that stay."""
        lines = self.text.replace("\r\n", "\n").split("\n")
        return [_CONTROL.sub("", line.split("\r")[-1]).rstrip() for line in lines]

    @property
    def too_wide(self) -> list[str]:
        """What a terminal would wrap."""
        return [line for line in self.drawn if width(line) > COLUMNS]

    @property
    def silences(self) -> list[float]:
        """Seconds between what was written, from the start to the end."""
        times = [0.0, *(at for at, _ in self.chunks), self.seconds]
        return [after - before for before, after in pairwise(times)]


def width(line: str) -> int:
    """Columns of a line in a terminal."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in _WIDE)
        for each in line
    )


def forebay(*arguments: str) -> list[str]:
    """A command line of Forebay's."""
    return [sys.executable, "-P", "-m", "forebay", *arguments]


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what a shell runs behind it ignores Ctrl-C


def in_terminal(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    seconds: float = 240.0,
    interrupt: Callable[[str], bool] = lambda _text: False,
) -> Capture:
    """Run a command in a terminal until it ends.

    interrupt: asked with all that is written so far; Ctrl-C is typed the first time it is true.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**kept, "TERM": "xterm-256color", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - no threads here
    )
    os.close(theirs)
    seen, typed = Capture(), False
    try:
        while True:
            left = started + seconds - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{command} has not ended after {seconds} s:\n{seen.text}")
            ready, _, _ = select.select([ours], [], [], min(left, 1.0))
            if not ready:
                continue
            try:
                data = os.read(ours, 65_536)
            except OSError:  # Linux says so when the other end is closed
                data = b""
            if not data:
                break
            seen.chunks.append((time.monotonic() - started, data.decode(errors="replace")))
            if not typed and interrupt(seen.text):
                os.write(ours, b"\x03")
                typed = True
        seen.exit_code = process.wait(timeout=30)
        seen.seconds = time.monotonic() - started
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)
    return seen
