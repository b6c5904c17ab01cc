"""What the threads of a process are at, and for how long each of them has not got on.

A thread marks its own work, so no other thread can show progress in its place. A mark costs less
than a microsecond: the clock is read by whoever looks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

# `working` has to get on. `computing` may take long in one call of a library: CPU time counts as
# progress. `waiting` is for others who are watched themselves, or for a call with a deadline.
ActivityState = Literal["working", "computing", "waiting"]

# So long CPU time stands for progress: what computes for longer without a mark runs in circles.
COMPUTING_SECONDS_MAX = 3600.0
# CPU seconds per second; threads that only beat and poll stay far below.
_COMPUTING_SHARE = 0.05


class Activity:
    """One line of work, entered by the thread that does it.

    state: what the thread does. doing: its step, for people. marks: changes with every progress.
    is_over: nobody waits for it any more, so it may hang.
    """

    def __init__(self, name: str) -> None:
        """Nobody does it yet."""
        self.name = name
        self.doing = ""
        self.state: ActivityState = "working"
        self.marks = 0
        self.is_over = False

    def __enter__(self) -> Self:
        """It is the calling thread's from now on."""
        with _lock:
            _activities[self] = None
        self._before = _here.activity
        _here.activity = self
        return self

    def __exit__(self, *_: object) -> None:
        """It is done."""
        _here.activity = self._before
        with _lock:
            del _activities[self]

    @property
    def text(self) -> str:
        """What a person is told."""
        return f"{self.name}, {self.doing}" if self.doing else self.name


class _Here(threading.local):
    activity: Activity | None = None


_here = _Here()
_lock = threading.Lock()
_activities: dict[Activity, None] = {}


def progressed() -> None:
    """The calling thread has got on; nothing where nobody watches it."""
    activity = _here.activity
    if activity is not None:
        activity.marks += 1


def current_activity() -> Activity | None:
    """What the calling thread is at, for those that it lets work; None where nobody watches it."""
    return _here.activity


@contextmanager
def helping(activity: Activity) -> Iterator[None]:
    """The calling thread's progress is also that of another thread's activity meanwhile."""
    before, _here.activity = _here.activity, activity
    try:
        yield
    finally:
        _here.activity = before


@contextmanager
def doing(what: str, state: ActivityState = "working") -> Iterator[None]:
    """A step of the calling thread; to begin and to end it is progress."""
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


@contextmanager
def waiting() -> Iterator[None]:
    """The calling thread waits for others who are watched, or with a deadline of its own."""
    activity = _here.activity
    if activity is None:
        yield
        return
    with doing(activity.doing, "waiting"):
        yield


def activities() -> list[Activity]:
    """What all threads of this process are at."""
    with _lock:
        return list(_activities)


class Stillness(NamedTuple):
    """The activity that has not got on for longest."""

    seconds: float
    doing: str


@dataclass
class _Age:
    marks: int
    still_seconds: float = 0.0
    computed_seconds: float = 0.0


class ActivityAges:
    """For how long activities have not got on, by the time that their process ran."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._ages: dict[Activity, _Age] = {}

    def look(
        self, found: Iterable[Activity], elapsed_seconds: float, cpu_seconds: float
    ) -> Stillness:
        """Take in what the activities show.

        Args:
            found: those there are now.
            elapsed_seconds: since the look before.
            cpu_seconds: that the whole process used meanwhile.
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
                _add(age, each.state, elapsed_seconds, computes=computes)
            self._ages[each] = age
            longest = max(longest, Stillness(age.still_seconds, each.text))
        return longest


def _add(age: _Age, state: ActivityState, seconds: float, *, computes: bool) -> None:
    age.computed_seconds += seconds
    if state == "computing" and computes and age.computed_seconds <= COMPUTING_SECONDS_MAX:
        age.still_seconds = 0.0
    else:
        age.still_seconds += seconds
