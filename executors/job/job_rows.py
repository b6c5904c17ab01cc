"""Rows of jobs, read in the caller's transaction.

Light: imports neither Arrow nor NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, func, select

from forebay.executors.job.measures import Progress
from forebay.executors.job.request import ACTIVE_STATES, JobStatus
from forebay.executors.roles.resources import Desired
from forebay.home.database.tables import batches, job_windows, jobs


class JobRow(NamedTuple):
    """A job as it is stored. document: its status as JSON. cancel_epoch: of an open request.

    desired: what is wanted of its processes, as JSON. epoch: of the newest owner. run_epoch: of the
    submission that runs or ran last. owner_run: the scheduler's run that is the owner, if one is.
    """

    id: int
    job_id: str
    pipeline: str
    line: str
    publishes: bool
    fingerprint: str
    runtime: str
    state: str
    epoch: int
    run_epoch: int
    owner_run: str | None
    cancel_epoch: int | None
    desired: str
    document: str
    beats: int
    beat_at: int | None
    progress: str | None

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_STATES

    @property
    def status(self) -> JobStatus:
        return JobStatus.of_document(self.document, f"job {self.job_id}")

    @property
    def wanted(self) -> Desired:
        return Desired.of_document(self.desired, f"what is wanted of job {self.job_id}")

    @property
    def reported(self) -> Progress | None:
        """The trainer's report as its supervisor stored it, at most a few seconds ago."""
        if self.progress is None:
            return None
        return Progress.of_document(self.progress, f"the progress of job {self.job_id}")


class JobWindow(NamedTuple):
    key: str
    generation: int


_ROW = [jobs.c[name] for name in JobRow._fields]
# Built once: whoever follows a job asks this every second, and building it costs more than asking.
_OF_ID = select(*_ROW).where(jobs.c.job_id == bindparam("job_id"))
_OF_IDS = select(*_ROW).where(jobs.c.job_id.in_(bindparam("job_ids", expanding=True)))


def find(connection: Connection, job_id: str) -> JobRow | None:
    """One job; None where it was never submitted."""
    found = connection.execute(_OF_ID, {"job_id": job_id}).one_or_none()
    return None if found is None else JobRow(*found)


def find_all(connection: Connection, job_ids: Iterable[str]) -> dict[str, JobRow]:
    """Jobs by their ids; those that were never submitted are left out."""
    found = (
        JobRow(*row)
        for some in batches(job_ids)
        for row in connection.execute(_OF_IDS, {"job_ids": some})
    )
    return {row.job_id: row for row in found}


def known_ids(connection: Connection, job_ids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in batches(job_ids):
        found.update(connection.scalars(select(jobs.c.job_id).where(jobs.c.job_id.in_(some))))
    return found


def select_jobs(
    connection: Connection, *conditions: ColumnElement[bool], jobs_max: int | None = None
) -> list[JobRow]:
    """Jobs that meet all conditions, the newest submission first, at most `jobs_max`."""
    newest = (jobs.c.submitted_at.desc(), jobs.c.id.desc())
    rows = select(*_ROW).where(*conditions).order_by(*newest).limit(jobs_max)
    return [JobRow(*row) for row in connection.execute(rows)]


def with_window(connection: Connection, window: str) -> list[int]:
    """Jobs of all pipelines that train, trained or were to train a window; as `JobRow.id`."""
    rows = select(job_windows.c.job_row).where(job_windows.c.window == window)
    return list(connection.scalars(rows))


def count_jobs(connection: Connection, *conditions: ColumnElement[bool]) -> int:
    return connection.scalar(select(func.count()).select_from(jobs).where(*conditions)) or 0


def of_line(pipeline: str, line: str | None) -> ColumnElement[bool]:
    """A job of a pipeline; of any line if `line` is None."""
    of_pipeline = jobs.c.pipeline == pipeline
    return of_pipeline if line is None else of_pipeline & (jobs.c.line == line)


def is_one_of(ids: Sequence[int]) -> ColumnElement[bool]:
    """A job with one of these `JobRow.id`."""
    return jobs.c.id.in_(ids)


def is_unended() -> ColumnElement[bool]:
    """A job that has not ended: it is active or lost."""
    return jobs.c.state.in_(ACTIVE_STATES)


def is_owned_by(run: str) -> ColumnElement[bool]:
    return jobs.c.owner_run == run


def windows_of(
    connection: Connection, *conditions: ColumnElement[bool]
) -> dict[int, list[JobWindow]]:
    """Windows in training order, of jobs that meet all conditions, by `JobRow.id`."""
    rows = (
        select(job_windows)
        .join(jobs)
        .where(*conditions)
        .order_by(job_windows.c.job_row, job_windows.c.position)
    )
    found: dict[int, list[JobWindow]] = {}
    for row in connection.execute(rows):
        found.setdefault(row.job_row, []).append(JobWindow(row.window, row.generation))
    return found


def is_job(job_id: str) -> ColumnElement[bool]:
    return jobs.c.job_id == job_id
