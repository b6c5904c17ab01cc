"""A job's progress as one line for a log, and what is worth a line."""

from __future__ import annotations

import math
import time

from forebay.executors.job.progress import Progress
from forebay.executors.job.request import JobStatus
from forebay.executors.job.stored_jobs import StoredJob
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.checkpoints import CheckpointStore

LINE_EVERY_SECONDS = 10.0
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def progress_line(
    status: JobStatus,
    progress: Progress | None,
    *,
    told_age: float = 0.0,
    seal_age: float | None = None,
) -> str:
    """Where the job stands.

    Args:
        status: of the job.
        progress: the trainer's own account; None before the first.
        told_age: seconds since that account. A trainer that stands still gives none, and what it
            told of its speed is true no more.
        seal_age: seconds since the newest checkpoint was sealed; None before the first.
    """
    restarts = ", ".join(f"{role} {count}" for role, count in status.restarts.items() if count)
    restarted = f"; restarts: {restarts}" if restarts else ""
    if progress is None or not progress.window:
        return f"job {status.job_id} is starting{restarted}"
    age = "" if seal_age is None else f" {in_words(seal_age)} ago"
    sealed = f"sealed at step {progress.sealed_step:,}{age}" if progress.sealed_step else "no seal"
    speed = f"{progress.rows_per_second:,.0f} rows/s"
    if told_age >= LINE_EVERY_SECONDS:
        speed = f"no step for {in_words(told_age)}"
    return (
        f"window {progress.window}: step {progress.step:,}, {speed}, "
        f"lag {in_words(progress.lag_seconds)}; {shares(progress.rows)}; {sealed}{restarted}"
    )


def shares(rows: dict[str, int]) -> str:
    """Each source's part of the rows trained so far."""
    total = sum(rows.values())
    if not total:
        return "no rows yet"
    return ", ".join(f"{name} {count / total:.0%}" for name, count in rows.items())


def in_words(seconds: float) -> str:
    """A span in its largest unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"


class ProgressLines:
    """Lines about one job, one every ten seconds, for whoever follows it."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._next = -math.inf

    def due(self, job: StoredJob) -> str | None:
        """The line, when it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + LINE_EVERY_SECONDS
        told_age = _seconds_since(job.reported_at)
        progress = job.progress
        if progress is None or told_age is None:
            return progress_line(job.status, None)
        seal_age = _seal_age(job, progress.window)
        return progress_line(job.status, progress, told_age=told_age, seal_age=seal_age)


def _seal_age(job: StoredJob, window: str) -> float | None:
    """Seconds since the newest seal of the window, by the clock of the file system."""
    generation = job.generation(window)
    if generation is None:
        return None
    chain = ModelChain(job.home, job.row.pipeline, job.row.line)
    return _seconds_since(CheckpointStore(chain.folder(window, generation)).sealed_at())


def _seconds_since(instant: float | None) -> float | None:
    return None if instant is None else max(0.0, time.time() - instant)
