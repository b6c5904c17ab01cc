"""The pulse of a process: a small file that says for how long its work has made no progress.

A thread of the process writes it, from the marks of the threads that work: that the thread itself
is alive only shows that the process runs.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from pathlib import Path
from typing import NamedTuple

from forebay.system.activities import ActivityAges, activities

BEAT_SECONDS = 0.5
_TEXT_BYTES = 240
_RECORD = struct.Struct(f"<Qd{_TEXT_BYTES}s")
# A longer interval means that the whole process was stopped: its threads could not work either.
_ELAPSED_MAX = 4 * BEAT_SECONDS
_LOG = logging.getLogger(__name__)


class Pulse(NamedTuple):
    """The signs of life of a process.

    beats: grows while it runs. still_seconds: how long the activity `doing` has made no progress.
    """

    beats: int
    still_seconds: float
    doing: str


class PulseFile:
    """The pulse of another process, by its file."""

    def __init__(self, path: Path) -> None:
        """Nothing is read yet."""
        self._path = path

    def forget(self) -> None:
        """Remove what an earlier process showed."""
        self._path.unlink(missing_ok=True)

    def read(self) -> Pulse | None:
        """What the process shows now; None before its first sign of life."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        if len(content) != _RECORD.size:
            return None
        beats, still_seconds, text = _RECORD.unpack(content)
        return Pulse(beats, still_seconds, text.rstrip(b"\0").decode(errors="replace"))


def start_pulse(path: Path) -> None:
    """Show the pulse of this process in a file, until it ends.

    Raises:
        OSError: when the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written in place: this works even when the disk is full by now.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    _write(descriptor, Pulse(1, 0.0, ""))
    threading.Thread(target=_beat_on, args=(descriptor,), name="pulse", daemon=True).start()


def _beat_on(descriptor: int) -> None:
    ages, beats, failed = ActivityAges(), 1, False
    now, cpu = time.monotonic(), time.process_time()
    while True:
        time.sleep(BEAT_SECONDS)
        before, cpu_before = now, cpu
        now, cpu = time.monotonic(), time.process_time()
        still = ages.look(activities(), min(now - before, _ELAPSED_MAX), cpu - cpu_before)
        beats += 1
        try:
            _write(descriptor, Pulse(beats, still.seconds, still.doing))
        except OSError as error:  # if no later write succeeds in time, the process is killed
            if not failed:
                _LOG.warning("the pulse of this process cannot be written now: %s", error)
            failed = True


def _write(descriptor: int, pulse: Pulse) -> None:
    text = pulse.doing.encode()[:_TEXT_BYTES]
    os.pwrite(descriptor, _RECORD.pack(pulse.beats, pulse.still_seconds, text), 0)
