"""Folders of jobs that ended long ago, on the host that ran them. Their rows stay."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, select

from forebay.executors.job.folder import JobFolder
from forebay.executors.job.job_rows import find, of_line
from forebay.executors.job.request import ENDED_STATES
from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.home.tables import jobs
from forebay.system.locks import FileLock
from forebay.system.trees import remove_tree

# Whoever only looks whether the lock is held has it for microseconds.
_LOCK_SECONDS = 0.1


def old_job_folders(
    home: Home, pipeline: str, line: str, count: int, limit: int | None = None
) -> list[Path]:
    """Folders of ended jobs of a line that ran here, without the newest jobs.

    Args:
        home: where they are.
        pipeline: whose jobs they are.
        line: what they trained.
        count: the newest jobs, whose folders stay.
        limit: jobs that are looked at, beginning with the newest of the rest; None for all.
    """
    here = runtime_of(home)

    def work(rows: Connection) -> list[str]:
        ended = (
            select(jobs.c.job_id)
            .where(of_line(pipeline, line), jobs.c.runtime == here)
            .where(jobs.c.state.in_(ENDED_STATES))
            .order_by(jobs.c.submitted_at.desc(), jobs.c.id.desc())
        )
        return list(rows.scalars(ended.offset(count).limit(limit)))

    folders = (home.job(job_id) for job_id in database_of(home).read(work))
    return [folder for folder in folders if folder.is_dir()]


def remove_job_folder(folder: Path) -> bool:
    """Remove the folder of a job that has ended; False when somebody runs it, or removed it.

    Raises:
        InfrastructureError: when the disk refuses.
    """
    job = JobFolder(folder)
    lock = FileLock(job.supervisor_lock)
    try:
        if not lock.acquire(_LOCK_SECONDS):
            return False
    except FileNotFoundError:
        return False
    try:
        row = database_of(job.home).read(lambda rows: find(rows, job.job_id))
        if row is None or row.is_active or row.runtime != runtime_of(job.home):
            return False
        remove_tree(folder)
    finally:
        lock.release()
    return True
