"""Jobs of a home, looked up by their rows: one job, those of a line, of a window, of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import ColumnElement, Connection

from forebay.errors import UsageError
from forebay.executors.job import job_rows
from forebay.executors.job.host import JobHost, host_of
from forebay.executors.job.job_rows import JobRow, JobWindow
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobStatus
from forebay.home.database.open import database_of
from forebay.home.job_id import window_job_id
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of


@dataclass(frozen=True)
class StoredJob:
    """A submitted job, as it was when it was looked up."""

    home: Home
    row: JobRow

    @cached_property
    def windows(self) -> tuple[JobWindow, ...]:
        this = job_rows.is_job(self.job_id)
        found = database_of(self.home).read(lambda rows: job_rows.windows_of(rows, this))
        return tuple(found.get(self.row.id, ()))

    @property
    def job_id(self) -> str:
        return self.row.job_id

    @property
    def host(self) -> JobHost:
        """The one of this host; a job of another host cannot be asked there."""
        return host_of(self.home)

    @property
    def is_here(self) -> bool:
        """Whether this home folder on this host runs the job, or ran it last."""
        return self.row.runtime == runtime_of(self.home)

    @cached_property
    def status(self) -> JobStatus:
        """The state of the job when this was first read; `lost` if its supervisor is dead.

        Whether a supervisor on another host is alive cannot be seen from here: such a job has the
        state that was last reported.

        Raises:
            UsageError: when the job no longer exists.
        """
        row = self.row
        while row.is_active and self.is_here and not self.host.is_held(self.job_id):
            again = database_of(self.home).read(lambda rows: job_rows.find(rows, self.job_id))
            if again is None:
                raise _unknown(self.home, self.job_id)
            if again.document == row.document:
                return row.status.model_copy(update={"state": "lost"})
            row = again  # it has ended, or was submitted again, between the two looks
        return row.status

    @property
    def progress(self) -> Progress | None:
        """The trainer's newest report; from another host it comes every few seconds."""
        return self.host.progress(self.job_id) if self.is_here else self.row.reported

    def generation(self, window: str) -> int | None:
        """The generation in which the job trains a window; None where it does not."""
        return next((each.generation for each in self.windows if each.key == window), None)


def stored_job(home: Home, job_id: str) -> StoredJob:
    """One job.

    Raises:
        UsageError: when no such job was ever submitted.
    """
    found = find_job(home, job_id)
    if found is None:
        raise _unknown(home, job_id)
    return found


def find_job(home: Home, job_id: str) -> StoredJob | None:
    """One job; None where it was never submitted."""
    row = database_of(home).read(lambda rows: job_rows.find(rows, job_id))
    return None if row is None else StoredJob(home, row)


def jobs_of(
    home: Home, pipeline: str, line: str | None = None, *, unended: bool = False
) -> list[StoredJob]:
    """The jobs of one pipeline, of all its lines or of one, newest first.

    unended: only those that have not ended.
    """
    state = [job_rows.is_unended()] if unended else []
    return _jobs(home, job_rows.of_line(pipeline, line), *state)


def newest_jobs(
    home: Home, pipeline: str | None, line: str | None, jobs_max: int
) -> tuple[list[StoredJob], int]:
    """The newest jobs of a home, of one pipeline or of one line of it, and how many there are."""
    conditions = () if pipeline is None else (job_rows.of_line(pipeline, line),)

    def work(rows: Connection) -> tuple[list[StoredJob], int]:
        found = _selected(rows, home, *conditions, jobs_max=jobs_max)
        return found, job_rows.count_jobs(rows, *conditions)

    return database_of(home).read(work)


def jobs_with_window(
    home: Home, pipeline: str, window: str, line: str | None = None
) -> list[StoredJob]:
    """The jobs of a pipeline that train, trained or were to train a window, newest first."""

    def work(rows: Connection) -> list[StoredJob]:
        training = job_rows.is_one_of(job_rows.with_window(rows, window))
        return _selected(rows, home, training, job_rows.of_line(pipeline, line))

    return database_of(home).read(work)


def window_jobs(home: Home, pipeline: str, line: str, window: str) -> list[StoredJob]:
    """The jobs of one window, one for each generation; jobs of ranges are not among them."""
    return [
        job
        for job in jobs_with_window(home, pipeline, window, line)
        if job.job_id == window_job_id(pipeline, line, window, job.generation(window) or 0)
    ]


def jobs_owned(home: Home, run: str) -> list[StoredJob]:
    """Jobs without an end whose newest owner is this run of a scheduler.

    A task passes its job to the next one, or dies and is restarted. If the run is ended at such a
    moment, no process exists that could end the job: its row says which run owns it.
    """
    return _jobs(home, job_rows.is_owned_by(run), job_rows.is_unended())


def _jobs(home: Home, *conditions: ColumnElement[bool]) -> list[StoredJob]:
    return database_of(home).read(lambda rows: _selected(rows, home, *conditions))


def _selected(
    rows: Connection, home: Home, *conditions: ColumnElement[bool], jobs_max: int | None = None
) -> list[StoredJob]:
    selected = job_rows.select_jobs(rows, *conditions, jobs_max=jobs_max)
    found = [StoredJob(home, row) for row in selected]
    if jobs_max is not None:
        conditions = (job_rows.is_one_of([job.row.id for job in found]),)
    windows = job_rows.windows_of(rows, *conditions) if found else {}
    for job in found:  # read together with the jobs, not one by one
        vars(job)["windows"] = tuple(windows.get(job.row.id, ()))
    return found


def _unknown(home: Home, job_id: str) -> UsageError:
    return UsageError(f"no job {job_id!r} below {home.root}: `forebay jobs ls` lists its jobs")


# The clocks of two hosts are never compared, so each watcher of a job of another host has to watch
# for the whole time itself.
# A job whose heartbeat stops for this long is gone, or is refused when it wakes.
EXPIRED_SECONDS = 30.0
# A live job has a heartbeat within this time.
BEATS_SECONDS = 8.0
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = 5.0


class HeartbeatWatch:
    """How long a job has shown no sign of life, for a caller that looks repeatedly.

    A look long after the one before starts over: the database was away in between, and no job
    could show a sign of life.
    """

    def __init__(self) -> None:
        self._seen: object = None
        self._since = self._looked_at = 0.0

    def silent_seconds(self, job: StoredJob) -> float:
        """How long its row has not changed; 0 for a job of this host or one that has ended."""
        now, row = time.monotonic(), job.row
        sign = (row.run_epoch, row.beats, row.state)
        paused = now - self._looked_at > _PAUSE_SECONDS
        if sign != self._seen or paused or job.is_here or not row.is_active:
            self._seen, self._since = sign, now
        self._looked_at = now
        return now - self._since


def is_silent(job: StoredJob, seconds: float = EXPIRED_SECONDS) -> bool:
    """Whether a job of another host shows no sign of life; returns at the first one, or after that.

    Raises:
        InfrastructureError: when the database cannot be read.
        UsageError: when the job no longer exists.
    """
    if job.is_here:
        return False
    watch = HeartbeatWatch()
    silent = watch.silent_seconds(job)
    while silent < seconds:
        time.sleep(_LOOK_SECONDS)
        before, silent = silent, watch.silent_seconds(stored_job(job.home, job.job_id))
        if silent <= before:
            return False
    return True
