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
    """What a command wrote.

    chunks: seconds since its start, and text. starved: beside each chunk, and at the end, the
    seconds that its threads had waited for a processor by then.
    """

    chunks: list[tuple[float, str]] = field(default_factory=list)
    starved: list[float] = field(default_factory=list)
    exit_code: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
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
        """The lines that stay, less the ^C that the terminal writes soon after the signal."""
        lines = self.text.replace("^C", "").replace("\r\n", "\n").split("\n")
        return [_CONTROL.sub("", line.split("\r")[-1]).rstrip() for line in lines]

    @property
    def too_wide(self) -> list[str]:
        return [line for line in self.drawn if width(line) > COLUMNS]

    @property
    def silences(self) -> list[float]:
        times = [0.0, *(at for at, _ in self.chunks), self.seconds]
        return [after - before for before, after in pairwise(times)]

    @property
    def own_silences(self) -> list[float]:
        """Silences less the time in which others had the processors that the command asked for."""
        starved = [after - before for before, after in pairwise([0.0, *self.starved])]
        return [silent - away for silent, away in zip(self.silences, starved, strict=True)]


class _Starved:
    """Seconds that threads of a process were ready to run and did not: schedstat of Linux."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}/task")
        self._of_thread: dict[Path, int] = {}

    def seconds(self) -> float:
        """Of all threads that were ever seen; call it often, a thread that has ended says none."""
        for thread in self._threads():
            try:
                _, waited, _ = (thread / "schedstat").read_text().split()
            except (OSError, ValueError):
                continue  # it ended meanwhile
            self._of_thread[thread] = int(waited)
        return sum(self._of_thread.values()) / 1e9

    def _threads(self) -> list[Path]:
        try:
            return list(self._folder.iterdir())
        except OSError:
            return []


def width(line: str) -> int:
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in _WIDE)
        for each in line
    )


def forebay(*arguments: str) -> list[str]:
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
    seen, typed, starved = Capture(), False, _Starved(process.pid)
    try:
        while True:
            left = started + seconds - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{command} has not ended after {seconds} s:\n{seen.text}")
            ready, _, _ = select.select([ours], [], [], min(left, 0.1))
            waited = starved.seconds()
            if not ready:
                continue
            try:
                data = os.read(ours, 65_536)
            except OSError:  # Linux says so when the other end is closed
                data = b""
            if not data:
                break
            seen.chunks.append((time.monotonic() - started, data.decode(errors="replace")))
            seen.starved.append(waited)
            if not typed and interrupt(seen.text):
                os.write(ours, b"\x03")
                typed = True
        seen.exit_code = process.wait(timeout=30)
        seen.seconds = time.monotonic() - started
        seen.starved.append(starved.seconds())
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)
    return seen
