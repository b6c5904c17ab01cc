"""Rows of jobs, read inside somebody's transaction.

Light: imports neither Arrow nor NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from forebay.executors.job.request import ACTIVE_STATES, JobStatus
from forebay.home.tables import job_windows, jobs


class JobRow(NamedTuple):
    """A job as it is stored. document: its status as JSON. cancel_epoch: of an open request."""

    id: int
    job_id: str
    pipeline: str
    line: str
    publishes: bool
    fingerprint: str
    runtime: str
    state: str
    epoch: int
    cancel_epoch: int | None
    document: str
    beats: int
    beat_at: int | None
    progress: str | None

    @property
    def is_active(self) -> bool:
        """Whether it was starting or running when it was reported last."""
        return self.state in ACTIVE_STATES

    @property
    def status(self) -> JobStatus:
        """Its status as it was reported last."""
        return JobStatus.model_validate_json(self.document)


class JobWindow(NamedTuple):
    """A window that a job trains, and in which generation."""

    key: str
    generation: int


_ROW = [jobs.c[name] for name in JobRow._fields]


def find(connection: Connection, job_id: str) -> JobRow | None:
    """One job; None where it was never submitted."""
    found = connection.execute(select(*_ROW).where(is_job(job_id))).one_or_none()
    return None if found is None else JobRow(*found)


def select_jobs(connection: Connection, *conditions: ColumnElement[bool]) -> list[JobRow]:
    """Jobs for which all of this is true, the newest submission first."""
    rows = select(*_ROW).where(*conditions).order_by(jobs.c.submitted_at.desc(), jobs.c.id.desc())
    return [JobRow(*row) for row in connection.execute(rows)]


def of_line(pipeline: str, line: str | None) -> ColumnElement[bool]:
    """A job of a pipeline; of any line where None is named."""
    of_pipeline = jobs.c.pipeline == pipeline
    return of_pipeline if line is None else of_pipeline & (jobs.c.line == line)


def has_window(window: str) -> ColumnElement[bool]:
    """A job that trains, trained or was to train a window."""
    return jobs.c.id.in_(select(job_windows.c.job_row).where(job_windows.c.window == window))


def is_unended() -> ColumnElement[bool]:
    """A job that has not come to its end: it is active or lost."""
    return jobs.c.state.in_(ACTIVE_STATES)


def is_owned_by(run: str) -> ColumnElement[bool]:
    """A job whose newest owner is this run."""
    return jobs.c.owner_run == run


def windows_of(
    connection: Connection, *conditions: ColumnElement[bool]
) -> dict[int, list[JobWindow]]:
    """Windows in the order of training, of jobs for which all of this is true; by `JobRow.id`."""
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
    """The job of this id."""
    return jobs.c.job_id == job_id
