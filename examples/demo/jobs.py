"""Jobs of the demo's pipeline that have not ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forebay.executors.job.progress import Progress
from forebay.executors.job.request import JobStatus
from forebay.executors.job.stored_jobs import jobs_of
from forebay.home.paths import Home


@dataclass(frozen=True)
class RunningJob:
    """A job that is training, and the newest progress of its trainer."""

    folder: Path
    status: JobStatus
    progress: Progress


def unfinished_jobs(home: Home, pipeline: str) -> list[Path]:
    """Folders of jobs that were submitted and have not ended."""
    return [job.folder.path for job in jobs_of(home, pipeline, unended=True)]


def running_jobs(home: Home, pipeline: str) -> list[RunningJob]:
    """Jobs whose trainer has started."""
    found = []
    for job in jobs_of(home, pipeline, unended=True):
        progress = job.progress
        if job.row.state == "running" and progress is not None:
            found.append(RunningJob(job.folder.path, job.row.status, progress))
    return found
