"""progress.json of a job: what its trainer reports to commands and operators.

Light on purpose: Airflow's operators read it and import neither Arrow nor numpy.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from forebay.executors.job.folder import PROGRESS_NAME
from forebay.system.message import Message


class Progress(Message):
    """A trainer's report, rewritten a few times a second.

    lag_seconds: time of data in the open window that is not trained yet.
    rows: rows that this process trained, by source; counts are proven by the model, not by this.
    sealed_step: the step of the newest sealed checkpoint; 0 before the first one.
    resumed: where the open window was taken over, for people; empty if it was not.
    sealed_at, reported_at: when that was sealed, and when this was written, as `time.time` counts;
    0 where that is not known.
    """

    window: str = ""
    windows_done: int = 0
    windows_total: int = 0
    step: int = 0
    sealed_step: int = 0
    sealed_at: float = 0.0
    resumed: str = ""
    reported_at: float = 0.0
    rows: dict[str, int] = Field(default_factory=dict)
    rows_per_second: float = 0.0
    lag_seconds: float = 0.0
    pid: int = 0
    phases_seconds: dict[str, float] = Field(default_factory=dict)


def read_progress(job_dir: Path) -> Progress | None:
    """The newest report, or None before the first."""
    return Progress.of_file(job_dir / PROGRESS_NAME)
