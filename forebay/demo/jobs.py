"""Jobs of the demo's pipeline, from their folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forebay.executors.job.folders import jobs_of
from forebay.executors.job.progress import Progress, read_progress
from forebay.executors.job.request import JobStatus
from forebay.home.paths import Home


@dataclass(frozen=True)
class RunningJob:
    """A job that trains, and the newest progress of its trainer."""

    folder: Path
    status: JobStatus
    progress: Progress


def unfinished_jobs(home: Home, pipeline: str) -> list[Path]:
    """Folders of jobs that were submitted and have not come to an end."""
    return [job.folder.path for job in jobs_of(home, pipeline) if not job.status.ended]


def running_jobs(home: Home, pipeline: str) -> list[RunningJob]:
    """Jobs whose trainer has begun."""
    found = []
    for job in jobs_of(home, pipeline):
        status = job.folder.stored_status()
        if status is None or status.state != "running":
            continue
        progress = read_progress(job.folder.path)
        if progress is not None:
            found.append(RunningJob(job.folder.path, status, progress))
    return found
