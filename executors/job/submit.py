"""Submit a job, or attach to it. Nothing depends on who submitted.

The submitter holds the supervisor's lock while it prepares the folder and stores the submission,
and passes it to the process that it starts: a submitted job always has a holder, so one whose
submitter was killed is seen as lost at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from forebay.config.role_environment import declared_variables
from forebay.config.yaml.environment import names_of
from forebay.errors import InfrastructureError, UsageError
from forebay.executors.job import job_changes
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import LIVE_SECONDS, JobHandle
from forebay.executors.job.heartbeat import is_silent
from forebay.executors.job.request import JobRequest
from forebay.executors.job.stored_jobs import find_job, stored_job
from forebay.home.database.format import record_format
from forebay.home.database.open import database_of
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.home.runtime import runtime_of
from forebay.system.environment import PLANNING, inherited
from forebay.system.files.locks import FileLock, is_held
from forebay.system.processes.parent import JOB_ID_NAME

# Arguments with which an interpreter runs a supervisor.
SUPERVISOR_ARGUMENTS = ("-P", "-m", "forebay.executors.supervisor")
SUPERVISOR_COMMAND = (sys.executable, *SUPERVISOR_ARGUMENTS)
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
        epoch = submission.start(supervisor)
        if epoch is None:
            epoch = submission.join()
        if epoch is not None:
            return JobHandle(home, request.job_id, epoch)
        if time.monotonic() > deadline:
            raise _not_started(submission.folder)
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
        self.folder = JobFolder(home.job(request.job_id))
        self._killed = 0

    def start(self, supervisor: Sequence[str]) -> int | None:
        """The epoch; None if another process runs the job, or its supervisor was killed at once."""
        lock = FileLock(self.folder.supervisor_lock)
        try:
            self.folder.create()
            if not lock.acquire(LIVE_SECONDS):
                return None
        except FileNotFoundError:
            return None  # the folder of an earlier run of the job is being removed: see retention
        try:
            epoch = self._store(lock)
            if epoch is None:
                return None
            process = _start(self.request, self.folder, supervisor, lock)
        finally:
            lock.release()
        if self._is_started(process):
            return epoch
        self._killed += 1
        if (process.poll() or 0) >= 0 or self._killed > _KILLED_MAX:
            raise _not_started(self.folder)
        return None

    def _store(self, lock: FileLock) -> int | None:
        """Prepare the folder and store the submission; None where another host runs the job."""
        lock.write("")  # its last holder is gone
        runtime = runtime_of(self.home)
        job = find_job(self.home, self.request.job_id)
        before = None if job is None else job.row
        if job is not None:
            job_changes.refuse_other_line(job.row, self.request)
            if job.row.is_active and not job.is_here and not is_silent(job):
                return None
        continues = job is not None and job.row.is_active and job.is_here
        self.folder.prepare(self.request, continues=continues)
        return database_of(self.home).transact(
            lambda rows: job_changes.submit(rows, self.request, runtime, self.run, before)
        )

    def join(self) -> int | None:
        """The epoch at a job that another call has started; None if none is certain to run."""
        found = find_job(self.home, self.request.job_id)
        if found is None or (found.is_here and not self.folder.is_supervised()):
            return None  # it is about to be submitted, or its supervisor is about to end
        database = database_of(self.home)
        epoch = database.transact(lambda rows: job_changes.join(rows, self.request, self.run))
        return epoch if epoch is not None and self._is_started(None) else None

    def _is_started(self, process: subprocess.Popen[bytes] | None) -> bool:
        """Wait for the supervisor's first report; False when it ends without one.

        Raises:
            ForebayError: the reason why it could not start.
        """
        deadline = time.monotonic() + _START_DEADLINE_SECONDS
        while time.monotonic() < deadline:
            ended = process is None or process.poll() is not None
            job = stored_job(self.home, self.request.job_id)
            status = job.row.status
            if status.state != "submitted":
                if status.started_at is None and status.error is not None:
                    raise status.error.exception()
                return True
            if ended and job.is_here and not is_held(self.folder.supervisor_lock):
                return False
            time.sleep(_POLL_SECONDS)
        return False


def _start(
    request: JobRequest, folder: JobFolder, command: Sequence[str], lock: FileLock
) -> subprocess.Popen[bytes]:
    referred = names_of(request.pipeline) | names_of(request.sources)
    declared = declared_variables(request.pipeline_spec().job, referred)
    environment = {
        **inherited(os.environ, (*PLANNING, *declared)),
        JOB_ID_NAME: folder.job_id,
        ENVIRONMENT_NAME: request.home,
    }
    where = ("--job", str(folder.path.absolute()), "--lock", str(lock.descriptor))
    with folder.supervisor_log.open("ab") as log:
        process = subprocess.Popen(
            [*command, *where],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
            pass_fds=(lock.descriptor,),
        )
    lock.leave()
    # The submitter may run for months: the supervisor must not become a zombie below it.
    threading.Thread(target=process.wait, name=f"reap-{folder.job_id}", daemon=True).start()
    return process


def _not_started(folder: JobFolder) -> InfrastructureError:
    return InfrastructureError(
        f"the supervisor of job {folder.job_id} did not start: see {folder.supervisor_log}"
    )
