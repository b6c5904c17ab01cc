"""Jobs of the demo's pipeline, from their folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forebay.executors.job.folder import JobFolder
from forebay.executors.job.progress import Progress, read_progress
from forebay.executors.job.request import JobStatus
from forebay.home.paths import Home


@dataclass(frozen=True)
class RunningJob:
    """A job that trains, and what its trainer told last."""

    folder: Path
    status: JobStatus
    progress: Progress


def job_folders(home: Home, pipeline: str) -> list[Path]:
    """Folders of all jobs of a pipeline that are still there."""
    return sorted(home.root.glob(f"jobs/{pipeline}-*"))


def unfinished_jobs(home: Home, pipeline: str) -> list[Path]:
    """Folders of jobs that were submitted and have not come to an end."""
    found = []
    for path in job_folders(home, pipeline):
        status = JobFolder(path).stored_status()
        if status is not None and not status.ended:
            found.append(path)
    return found


def running_jobs(home: Home, pipeline: str) -> list[RunningJob]:
    """Jobs whose trainer has begun."""
    found = []
    for path in job_folders(home, pipeline):
        status = JobFolder(path).stored_status()
        if status is None or status.state != "running":
            continue
        progress = read_progress(path)
        if progress is not None:
            found.append(RunningJob(path, status, progress))
    return found
