"""One owner's view of a job: read the status, wait for the end, cancel, resize.

A job is one supervisor process in its own session. Every submission and attachment gets an epoch
that is higher than all before; an owner with an older one can read, but can no longer end anything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import InfrastructureError, UsageError
from forebay.executors.job import job_changes
from forebay.executors.job.host import LIVE_SECONDS, JobHost, Started, host_of
from forebay.executors.job.request import JobStatus
from forebay.executors.job.stored_jobs import StoredJob, stored_job
from forebay.home.database.open import database_of
from forebay.home.paths import Home

# A database that is away for longer fails the job, which then continues from its newest checkpoint.
GONE_SECONDS = 600.0
_CANCEL_DEADLINE_SECONDS = 30.0
_RESIZE_SECONDS = 15.0
_POLL_SECONDS = 0.02
_POLL_MAX_SECONDS = 0.25


@dataclass(frozen=True)
class JobHandle:
    """One owner's view of a job. It may be stored and recreated from its three fields."""

    home: Home
    job_id: str
    epoch: int

    @property
    def host(self) -> JobHost:
        return host_of(self.home)

    @property
    def logs(self) -> Path:
        """The folder with a log for each process."""
        return self.host.logs(self.job_id)

    def look(self) -> StoredJob:
        """The job now.

        Raises:
            UsageError: when no such job was ever submitted.
            InfrastructureError: when the database cannot be read.
        """
        return stored_job(self.home, self.job_id)

    def status(self) -> JobStatus:
        """The state of the job now; raises as `look`."""
        return self.look().status

    def is_started(self, seconds: float, process: Started | None = None) -> bool:
        """Wait for the first report of the job's supervisor; False when it ends without one.

        process: the supervisor, if it is this process's child.

        Raises:
            ForebayError: the reason why it could not start.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = process is None or process.poll() is not None
            job = self.look()
            status = job.row.status
            if status.state != "submitted":
                if status.started_at is None and status.error is not None:
                    raise status.error.exception()
                return True
            if ended and job.is_here and not self.host.is_held(self.job_id):
                return False
            time.sleep(_POLL_SECONDS)
        return False

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job has ended or is lost, or for so many seconds.

        After an end the supervisor is gone too, and with it every process of the job.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _POLL_SECONDS
        while True:
            status = self.status()
            is_gone = status.ended and not self.host.is_held(self.job_id)
            left = pause if deadline is None else deadline - time.monotonic()
            if is_gone or status.state == "lost" or left <= 0:
                return status
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _POLL_MAX_SECONDS)

    def cancel(self, seconds: float = _CANCEL_DEADLINE_SECONDS) -> None:
        """End the job. Returns once that is certain; `wait` returns when all processes are gone.

        A job that has ended stays as it is. seconds: how long the supervisor may take to answer;
        the request stays after that.

        Raises:
            FencedError: when a newer owner has attached: the job is theirs.
            UsageError: when no such job was ever submitted.
            InfrastructureError: when the supervisor does not answer.
        """
        deadline = time.monotonic() + seconds
        self.look()
        database_of(self.home).transact(
            lambda rows: job_changes.request_cancel(rows, self.job_id, self.epoch)
        )
        self.host.poke(self.job_id)
        pause = _POLL_SECONDS
        while not self._is_answered():
            if time.monotonic() >= deadline:
                raise InfrastructureError(
                    f"the supervisor of job {self.job_id} does not answer: see {self.logs}"
                )
            time.sleep(pause)
            pause = min(pause * 1.5, _POLL_MAX_SECONDS)

    def _is_answered(self) -> bool:
        """Whether the end of the job is certain.

        Raises:
            FencedError: when a newer owner came before the supervisor had accepted.
        """
        job = self.look()
        status = job.status
        if status.ended or status.cancelled_by is not None:
            return True
        job_changes.refuse_older(job.row, self.epoch)
        return status.state == "lost" and self._end_lost()

    def _end_lost(self) -> bool:
        """Cancel a job that no supervisor runs; False when one does."""
        with self.host.hold(self.job_id, LIVE_SECONDS) as held:
            if held is None:
                return False
            held.end_left()
            database_of(self.home).transact(
                lambda rows: job_changes.end_cancelled(rows, self.job_id, self.epoch)
            )
            return True


def resize(job: StoredJob, role: str, changes: Mapping[str, float | None]) -> dict[str, str]:
    """Change the limits of each process of a role, until the job ends.

    By process, why they do not hold; empty where they do. changes: fields of `Resources`.

    Raises:
        UsageError: when the job has ended, or has no such role.
        InfrastructureError: when its supervisor does not answer or is gone; what is wanted stays.
    """
    version = database_of(job.home).transact(
        lambda rows: job_changes.resize(rows, job.job_id, role, changes)
    )
    job.host.poke(job.job_id)
    deadline = time.monotonic() + _RESIZE_SECONDS
    while time.monotonic() < deadline:
        status = stored_job(job.home, job.job_id).status
        if status.acted_on >= version:
            return {
                name: why for name, why in status.unmet.items() if name.rpartition("-")[0] == role
            }
        if status.ended:
            raise UsageError(f"job {job.job_id} ended ({status.state}) before it was resized")
        if status.state == "lost":
            raise InfrastructureError(
                f"job {job.job_id} has lost its supervisor: run its windows again, and these "
                "limits hold"
            )
        time.sleep(_POLL_MAX_SECONDS)
    raise InfrastructureError(
        f"the supervisor of job {job.job_id} has not answered within {_RESIZE_SECONDS:.0f} s; once "
        "it does, these limits hold"
    )
