"""A job's progress as one log line, and when to log one."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from heapq import nlargest

from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobStatus
from forebay.executors.job.stored_jobs import StoredJob

LINE_EVERY_SECONDS = 10.0
# A line stays short: the sources with the fewest rows are told together.
_SOURCES_NAMED = 4
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def progress_line(status: JobStatus, progress: Progress | None, now: float) -> str:
    """The job's progress; `progress` is None before the first report, `now` a `time.time`.

    A trainer that is stuck reports nothing, so the speed that it last reported no longer applies.
    """
    restarts = ", ".join(f"{role} {count}" for role, count in status.restarts.items() if count)
    restarted = f"; restarts: {restarts}" if restarts else ""
    if progress is None or not progress.window:
        return f"job {status.job_id} is starting{restarted}"
    age = f" {in_words(max(0.0, now - progress.sealed_at))} ago" if progress.sealed_at else ""
    sealed = f"sealed at step {progress.sealed_step:,}{age}" if progress.sealed_step else "no seal"
    speed = f"{progress.rows_per_second:,.0f} rows/s"
    silence = now - progress.reported_at if progress.reported_at else 0.0
    if silence >= LINE_EVERY_SECONDS:
        speed = f"no step for {in_words(silence)}"
    return (
        f"window {progress.window}: step {progress.step:,}, {speed}, "
        f"lag {in_words(progress.lag_seconds)}; {shares(progress.rows)}; {sealed}{restarted}"
    )


def shares(rows: dict[str, int]) -> str:
    total = sum(rows.values())
    if not total:
        return "no rows yet"
    named: Collection[str] = rows
    if len(rows) > _SOURCES_NAMED:
        named = nlargest(_SOURCES_NAMED - 1, rows, key=rows.__getitem__)
    said = [f"{name} {rows[name] / total:.0%}" for name in named]
    if others := len(rows) - len(named):
        said.append(f"{others} others {1 - sum(rows[name] for name in named) / total:.0%}")
    return ", ".join(said)


def in_words(seconds: float) -> str:
    """A duration in its largest unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"


class ProgressLines:
    """Log lines about one job, one every ten seconds, for a task or trigger that follows it.

    They use only what is stored about the job; nothing is read from its folder.
    """

    def __init__(self) -> None:
        self._next = -math.inf

    def due(self, job: StoredJob) -> str | None:
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + LINE_EVERY_SECONDS
        return progress_line(job.row.status, job.row.reported, time.time())
