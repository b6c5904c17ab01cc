"""A job's progress as one line for a log, and what is worth a line."""

from __future__ import annotations

import time
from pathlib import Path

from forebay.executors.job_models import JobRequest, JobStatus
from forebay.executors.progress_file import Progress, read_progress
from forebay.home import Home

LINE_EVERY_SECONDS = 10.0
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def progress_line(status: JobStatus, progress: Progress | None, seal_age: float | None) -> str:
    """Where the job stands. `seal_age`: seconds since the newest checkpoint was sealed."""
    restarts = ", ".join(f"{role} {count}" for role, count in status.restarts.items() if count)
    restarted = f"; restarts: {restarts}" if restarts else ""
    if progress is None or not progress.window:
        return f"job {status.job_id} is starting{restarted}"
    age = "" if seal_age is None else f" {in_words(seal_age)} ago"
    sealed = f"sealed at step {progress.sealed_step:,}{age}" if progress.sealed_step else "no seal"
    speed = f"{progress.rows_per_second:,.0f} rows/s, lag {in_words(progress.lag_seconds)}"
    return (
        f"window {progress.window}: step {progress.step:,}, {speed}; "
        f"{shares(progress.rows)}; {sealed}{restarted}"
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

    def __init__(self, home: Home, job_id: str) -> None:
        """Nothing is read yet."""
        self._home = home
        self._folder = home.job(job_id)
        self._models: dict[str, Path] | None = None
        self._next = 0.0

    def due(self, status: JobStatus) -> str | None:
        """The line, when it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + LINE_EVERY_SECONDS
        progress = read_progress(self._folder)
        age = self._seal_age(progress.window) if progress is not None else None
        return progress_line(status, progress, age)

    def _seal_age(self, window: str) -> float | None:
        """Seconds since the newest seal of the window, by the clock of the file system."""
        if self._models is None:
            request = JobRequest.read(self._folder)
            self._models = {
                asked.key: self._home.model(
                    request.pipeline_name, request.line, asked.key, asked.generation
                )
                for asked in request.windows
            }
        model = self._models.get(window)
        if model is None:
            return None
        seals = [path.stat().st_mtime for path in model.glob("checkpoints/[0-9]*/seal.json")]
        return max(0.0, time.time() - max(seals)) if seals else None
