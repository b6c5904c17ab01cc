"""What the threads of a process are doing, and for how long each has made no progress.

A thread marks its own work, so no other thread can show progress in its place. A mark costs less
than a microsecond: only the reader of the marks reads the clock.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self

# `working` must make progress. `computing` may take long in one library call: CPU time counts as
# progress. `waiting` is for others that are watched themselves, or for a call with a deadline.
ActivityState = Literal["working", "computing", "waiting"]

# CPU time counts as progress for this long: longer without a mark is taken for an endless loop.
COMPUTING_SECONDS_MAX = 3600.0
# CPU seconds per second; threads that only beat and poll use far less.
_COMPUTING_SHARE = 0.05


class Activity:
    """One piece of work, entered by the thread that does it.

    state: what the thread is doing. doing: its step, for people. marks: changes with all progress.
    is_over: nobody waits for it any more, so it may hang.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.doing = ""
        self.state: ActivityState = "working"
        self.marks = 0
        self.is_over = False

    def __enter__(self) -> Self:
        with _lock:
            _activities[self] = None
        self._before = _here.activity
        _here.activity = self
        return self

    def __exit__(self, *_: object) -> None:
        _here.activity = self._before
        with _lock:
            del _activities[self]

    @property
    def text(self) -> str:
        return f"{self.name}, {self.doing}" if self.doing else self.name


class _Here(threading.local):
    activity: Activity | None = None


_here = _Here()
_lock = threading.Lock()
_activities: dict[Activity, None] = {}


def progressed() -> None:
    """Record progress of the calling thread; no effect if nobody watches it."""
    activity = _here.activity
    if activity is not None:
        activity.marks += 1


def current_activity() -> Activity | None:
    """The calling thread's activity, to hand to its helpers; None if nobody watches it."""
    return _here.activity


@contextmanager
def helping(activity: Activity) -> Iterator[None]:
    """Inside the block, progress of the calling thread counts for another thread's activity."""
    before, _here.activity = _here.activity, activity
    try:
        yield
    finally:
        _here.activity = before


@contextmanager
def doing(what: str, state: ActivityState = "working") -> Iterator[None]:
    """A step of the calling thread; its start and its end count as progress."""
    activity = _here.activity
    if activity is None:
        yield
        return
    before = activity.doing, activity.state
    activity.doing, activity.state = what, state
    activity.marks += 1
    try:
        yield
    finally:
        activity.doing, activity.state = before
        activity.marks += 1


def waiting() -> AbstractContextManager[None]:
    """The calling thread waits for others that are watched, or with a deadline of its own."""
    activity = _here.activity
    return doing("" if activity is None else activity.doing, "waiting")


def activities() -> list[Activity]:
    """The activities of all threads of this process."""
    with _lock:
        return list(_activities)


class Stillness(NamedTuple):
    """The activity that has made no progress for longest."""

    seconds: float
    doing: str


@dataclass
class _Age:
    marks: int
    still_seconds: float = 0.0
    computed_seconds: float = 0.0


class ActivityAges:
    """For how long activities have made no progress, in time that their process ran."""

    def __init__(self) -> None:
        self._ages: dict[Activity, _Age] = {}

    def look(
        self, found: Iterable[Activity], elapsed_seconds: float, cpu_seconds: float
    ) -> Stillness:
        """Update the ages with the current state of the activities.

        cpu_seconds: used by the whole process since the previous call, `elapsed_seconds` ago.
        """
        computes = cpu_seconds >= _COMPUTING_SHARE * elapsed_seconds
        before, self._ages = self._ages, {}
        longest = Stillness(0.0, "")
        for each in found:
            if each.is_over:
                continue
            age = before.get(each)
            if age is None or age.marks != each.marks or each.state == "waiting":
                age = _Age(each.marks)
            else:
                age.computed_seconds += elapsed_seconds
                age.still_seconds += elapsed_seconds
                in_call = each.state == "computing" and computes
                if in_call and age.computed_seconds <= COMPUTING_SECONDS_MAX:
                    age.still_seconds = 0.0
            self._ages[each] = age
            longest = max(longest, Stillness(age.still_seconds, each.text))
        return longest


# A thread of the process writes it, from the marks of the threads that work: that the thread itself
# is alive only shows that the process runs.

BEAT_SECONDS = 0.5
_TEXT_BYTES = 240
_RECORD = struct.Struct(f"<Qd{_TEXT_BYTES}s")
# A longer interval means that the whole process was stopped: its threads could not work either.
_ELAPSED_MAX = 4 * BEAT_SECONDS
_LOG = logging.getLogger(__name__)


class Pulse(NamedTuple):
    """beats: grows while it runs. still_seconds: without progress of the activity `doing`."""

    beats: int
    still_seconds: float
    doing: str


class PulseFile:
    """The pulse of another process, by its file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def forget(self) -> None:
        """Remove what an earlier process showed."""
        self._path.unlink(missing_ok=True)

    def read(self) -> Pulse | None:
        """What the process shows now; None before its first sign of life."""
        with suppress(FileNotFoundError):
            content = self._path.read_bytes()
            if len(content) == _RECORD.size:
                beats, still_seconds, text = _RECORD.unpack(content)
                return Pulse(beats, still_seconds, text.rstrip(b"\0").decode(errors="replace"))
        return None


_shown: list[int] = []  # the descriptor of the file that shows the pulse of this process


def start_pulse(path: Path) -> None:
    """Show the pulse of this process in a file, until it ends or another file is named.

    Raises:
        OSError: when the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written in place: this works even when the disk is full by now.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    _write(descriptor, Pulse(1, 0.0, ""))
    if _shown:
        os.dup2(descriptor, _shown[0], inheritable=False)
        os.close(descriptor)
        return
    _shown.append(descriptor)
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
