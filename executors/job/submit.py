"""Submit a job, or attach to it. Nothing depends on who submitted.

The submitter holds the job while it prepares and stores the submission, and passes it to the
supervisor that it starts: a submitted job always has a holder, so one whose
submitter was killed is seen as lost at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from forebay.errors import InfrastructureError, UsageError
from forebay.executors.job import job_changes
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.host import LIVE_SECONDS, SUPERVISOR_COMMAND, HeldJob, host_of
from forebay.executors.job.request import JobRequest
from forebay.executors.job.stored_jobs import find_job, is_silent, stored_job
from forebay.home.database.format import record_format
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of

_START_DEADLINE_SECONDS = 60.0
_POLL_SECONDS = 0.02
# How often one call starts another supervisor after one that was killed before it reported.
_KILLED_MAX = 3


def submit(
    home: Home,
    request: JobRequest,
    supervisor: Sequence[str] = SUPERVISOR_COMMAND,
    run: str | None = None,
) -> JobHandle:
    """Start the job, or attach to it if it is already running.

    A job that ended or was lost starts again, in the same folder, with a higher epoch. After
    `lost` the restart counts continue; after an end they begin at 0. The supervisor outlives the
    caller, however that ends. A job of another host is taken over when it shows no sign of life
    for `EXPIRED_SECONDS`. `--job DIR --lock DESCRIPTOR` is added to the command `supervisor`. run:
    a scheduler's, which owns the job from now on.

    Raises:
        UsageError: when the request was made for another home, or its job id belongs to another
            pipeline or line.
        ConfigError: when that home was written by another version, or when the job cannot be run
            as declared.
        InfrastructureError: when the supervisor does not start, when another job trains this
            model line, or when this job id runs with a different request.
    """
    if request.home != str(home.root.absolute()):
        raise UsageError(f"the request is for home {request.home}, not {home.root.absolute()}")
    record_format(home)
    submission = _Submission(home, request, run)
    deadline = time.monotonic() + _START_DEADLINE_SECONDS
    while True:
        handle = submission.start(supervisor) or submission.join()
        if handle is not None:
            return handle
        if time.monotonic() > deadline:
            raise submission.not_started()
        time.sleep(_POLL_SECONDS)


def attach(home: Home, job_id: str, run: str | None = None) -> JobHandle:
    """Become the newest owner of a job that was submitted before, in whatever state it is.

    Raises:
        UsageError: when no such job was ever submitted.
    """
    stored_job(home, job_id)
    epoch = database_of(home).transact(lambda rows: job_changes.attach(rows, job_id, run))
    return JobHandle(home, job_id, epoch)


class _Submission:
    """One call of `submit`: `start` and `join` are tried in turn until one of them can act."""

    def __init__(self, home: Home, request: JobRequest, run: str | None) -> None:
        self.home = home
        self.request = request
        self.run = run
        self.host = host_of(home)
        self._killed = 0

    def start(self, supervisor: Sequence[str]) -> JobHandle | None:
        """None if another process runs the job, or its supervisor was killed at once."""
        with self.host.hold(self.request.job_id, LIVE_SECONDS) as held:
            handle = None if held is None else self._store(held)
            if held is None or handle is None:
                return None
            process = held.start(self.request, supervisor)
        if handle.is_started(_START_DEADLINE_SECONDS, process):
            return handle
        self._killed += 1
        if (process.poll() or 0) >= 0 or self._killed > _KILLED_MAX:
            raise self.not_started()
        return None

    def _store(self, held: HeldJob) -> JobHandle | None:
        """Prepare and store the submission; None where another host runs the job."""
        runtime = runtime_of(self.home)
        job = find_job(self.home, self.request.job_id)
        before = None if job is None else job.row
        if job is not None:
            job_changes.refuse_other_line(job.row, self.request)
            if job.row.is_active and not job.is_here and not is_silent(job):
                return None
        continues = job is not None and job.row.is_active and job.is_here
        held.prepare(self.request, continues=continues)
        return self._handle(
            lambda rows: job_changes.submit(rows, self.request, runtime, self.run, before)
        )

    def join(self) -> JobHandle | None:
        """Of a job that another call has started; None if none is certain to run."""
        found = find_job(self.home, self.request.job_id)
        if found is None or (found.is_here and not self.host.is_supervised(self.request.job_id)):
            return None  # it is about to be submitted, or its supervisor is about to end
        handle = self._handle(lambda rows: job_changes.join(rows, self.request, self.run))
        return handle if handle is not None and handle.is_started(_START_DEADLINE_SECONDS) else None

    def _handle(self, change: Callable[[Connection], int | None]) -> JobHandle | None:
        epoch = database_of(self.home).transact(change)
        return None if epoch is None else JobHandle(self.home, self.request.job_id, epoch)

    def not_started(self) -> InfrastructureError:
        job_id = self.request.job_id
        return InfrastructureError(
            f"the supervisor of job {job_id} did not start: see supervisor.log in "
            f"{self.host.logs(job_id)}"
        )
