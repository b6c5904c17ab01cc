"""How long a job has shown no sign of life, by the clock of the process that watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.executors.job import stored_jobs
from forebay.executors.job.stored_jobs import HeartbeatWatch, is_silent


@dataclass
class Row:
    run_epoch: int = 1
    beats: int = 5
    state: str = "running"

    @property
    def is_active(self) -> bool:
        return self.state == "running"


class Job:
    """A job as it is looked up; `is_here` is whether this host runs it."""

    home = None
    job_id = "j1"

    def __init__(self, *, is_here: bool = False, **row: Any) -> None:
        self.row = Row(**row)
        self.is_here = is_here


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What `time.monotonic` says; `sleep` lets it go on."""
    now = [100.0]
    time = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds)
    )
    monkeypatch.setattr(stored_jobs, "time", time)  # of this module: other threads need theirs
    return now


def silent_after(watch: HeartbeatWatch, clock: list[float], seconds: float, job: Any) -> float:
    clock[0] += seconds
    return watch.silent_seconds(job)


def test_a_row_that_stands_still_is_silent_for_longer_and_longer(clock: list[float]) -> None:
    watch = HeartbeatWatch()
    assert [silent_after(watch, clock, 4, Job()) for _ in range(3)] == [0, 4, 8]


@pytest.mark.parametrize("sign", [{"beats": 6}, {"run_epoch": 2}, {"state": "failed"}])
def test_any_change_is_a_sign_of_life(clock: list[float], sign: dict[str, Any]) -> None:
    watch = HeartbeatWatch()
    watch.silent_seconds(Job())
    silent_after(watch, clock, 4, Job())
    assert silent_after(watch, clock, 4, Job(**sign)) == 0


def test_a_job_of_this_host_and_one_that_ended_are_never_silent(clock: list[float]) -> None:
    for job in (Job(is_here=True), Job(state="failed")):
        watch = HeartbeatWatch()
        watch.silent_seconds(job)
        assert silent_after(watch, clock, 4, job) == 0


def test_what_nobody_could_see_does_not_count(clock: list[float]) -> None:
    watch = HeartbeatWatch()
    watch.silent_seconds(Job())
    assert silent_after(watch, clock, 1000, Job()) == 0, "the database was away"
    assert silent_after(watch, clock, 4, Job()) == 4


Looks = Callable[..., None]


@pytest.fixture
def looks(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> Looks:
    """What each look at the job finds, the last of them again and again."""

    def set_up(*jobs: Any) -> None:
        left = list(jobs)
        monkeypatch.setattr(
            stored_jobs, "stored_job", lambda *_: left.pop(0) if len(left) > 1 else left[0]
        )

    return set_up


def watched(job: Any = None) -> bool:
    return is_silent(job or Job(), 30)


def test_one_that_stands_still_for_so_long_is_silent(clock: list[float], looks: Looks) -> None:
    looks(Job())
    assert (watched(), clock[0]) == (True, 130)


@pytest.mark.parametrize(
    "last", [Job(beats=6), Job(run_epoch=2), Job(state="succeeded"), Job(is_here=True)]
)
def test_the_first_sign_of_life_ends_the_watch(clock: list[float], looks: Looks, last: Any) -> None:
    looks(Job(), Job(), last)
    assert (watched(), clock[0]) == (False, 101.5)


def test_one_that_beats_between_any_two_looks_lives(clock: list[float], looks: Looks) -> None:
    looks(*[Job(beats=number) for number in range(6, 99)])
    assert (watched(), clock[0]) == (False, 100.5)


def test_a_job_of_this_host_is_not_watched(clock: list[float]) -> None:
    assert (watched(Job(is_here=True)), clock[0]) == (False, 100)
