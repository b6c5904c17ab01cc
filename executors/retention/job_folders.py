"""Folders of jobs that ended long ago on the host that ran them, and of jobs that never began.

Rows of jobs are kept. A submission that died before its row was stored leaves a folder without one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, select

from forebay.executors.job.folder import JobFolder
from forebay.executors.job.job_rows import JobRow, find, known_ids, of_line
from forebay.executors.job.request import ENDED_STATES
from forebay.home.database.open import database_of
from forebay.home.database.tables import jobs
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.home.store.garbage import LEFTOVER_SECONDS
from forebay.system.files.locks import FileLock
from forebay.system.files.trees import remove_tree

# A process that only checks whether the lock is held has it for microseconds.
_LOCK_SECONDS = 0.1


def old_job_folders(
    home: Home, pipeline: str, line: str, count: int, limit: int | None = None
) -> list[Path]:
    """Folders of ended jobs of a line that ran here, without the newest jobs.

    count: how many of the newest jobs keep their folders.
    limit: how many of the other jobs are looked at, the newest first; None for all.
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


def unsubmitted_folders(home: Home) -> list[Path]:
    """Folders without a job that have not changed for a day, in order."""
    before = time.time() - LEFTOVER_SECONDS
    found: list[Path] = []
    for path in sorted(home.jobs.glob("[!.]*")):
        with suppress(FileNotFoundError):  # it is being removed
            if path.is_dir() and path.stat().st_mtime < before:
                found.append(path)
    submitted = database_of(home).read(lambda rows: known_ids(rows, (each.name for each in found)))
    return [each for each in found if each.name not in submitted]


def remove_job_folder(folder: Path) -> bool:
    """Remove the folder of a job that has ended; False when it runs again, or is already removed.

    Raises:
        InfrastructureError: when the disk fails.
    """
    here = runtime_of(JobFolder(folder).home)
    return _removed(
        folder, lambda row: row is not None and not row.is_active and row.runtime == here
    )


def remove_unsubmitted(folder: Path) -> bool:
    """Remove a folder without a job; False when somebody submits one there. Raises as above."""
    return _removed(folder, lambda row: row is None)


def _removed(folder: Path, may_go: Callable[[JobRow | None], bool]) -> bool:
    """Remove a folder; False if its lock is held, or its job's row does not allow it."""
    job = JobFolder(folder)
    lock = FileLock(job.supervisor_lock)
    try:
        if not lock.acquire(_LOCK_SECONDS):
            return False
    except FileNotFoundError:
        return False
    try:
        if not may_go(database_of(job.home).read(lambda rows: find(rows, job.job_id))):
            return False
        remove_tree(folder)
    finally:
        lock.release()
    return True
