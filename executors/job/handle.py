"""The job contract: submit, attach, read the status, cancel. Nothing depends on who submitted.

A job is one supervisor process in a session of its own. Every submission and attachment gets an
epoch that is higher than all before; an older one can read, but can end nothing any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from forebay.errors import FencedError, InfrastructureError, UsageError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.processes import processes_of_job
from forebay.executors.job.request import (
    REQUEST_NAME,
    JobRequest,
    JobStatus,
)
from forebay.home.format import record_format
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.locks import FileLock, is_held
from forebay.system.parent import JOB_ID_NAME
from forebay.system.processes import kill_all

# What an interpreter is given to be a supervisor.
SUPERVISOR_ARGUMENTS = ("-P", "-m", "forebay.executors.supervisor")
SUPERVISOR_COMMAND = (sys.executable, *SUPERVISOR_ARGUMENTS)
# How long a lock must stay taken to count as a live supervisor's.
_LIVE_SECONDS = 0.2
_START_DEADLINE_SECONDS = 60.0
_CANCEL_DEADLINE_SECONDS = 30.0
_POLL_SECONDS = 0.02
_POLL_MAX_SECONDS = 0.25


@dataclass(frozen=True)
class JobHandle:
    """One owner's view of a job. It may be stored and made again from its three fields."""

    home: Home
    job_id: str
    epoch: int

    @property
    def folder(self) -> JobFolder:
        """The job's files."""
        return JobFolder(self.home.job(self.job_id))

    def status(self) -> JobStatus:
        """The state of the job now.

        Raises:
            UsageError: when no such job was ever submitted.
        """
        status = self.folder.status()
        if status is None:
            raise UsageError(f"no job {self.job_id!r} below {self.home.root}")
        return status

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job has ended or is lost, or until the deadline (seconds).

        After an end the supervisor is gone too, and with it every process of the job.

        Returns:
            The status; at the deadline one that is not `ended`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _POLL_SECONDS
        while True:
            status = self.status()
            over = status.state == "lost" or (
                status.ended and not is_held(self.folder.supervisor_lock)
            )
            left = pause if deadline is None else deadline - time.monotonic()
            if over or left <= 0:
                return status
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _POLL_MAX_SECONDS)

    def cancel(self, seconds: float = _CANCEL_DEADLINE_SECONDS) -> None:
        """End the job. Returns once that is certain; `wait` returns when all processes are gone.

        A job that has ended stays as it is.

        Args:
            seconds: how long the supervisor may take to answer. The request to cancel stays.

        Raises:
            FencedError: a newer owner attached: the job is theirs.
            InfrastructureError: when the supervisor does not answer.
        """
        with self.folder.launch_lock():
            self._refuse_older()
            if self._cancel_without_supervisor():
                return
            self.folder.request_cancel(self.epoch)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            newest = self.folder.epoch()  # before the status: an accepted request is seen then
            status = self.status()
            if status.ended or status.cancelled_by is not None:
                return
            if newest > self.epoch:
                raise self._fenced(newest)
            if status.state == "lost":
                self.cancel(seconds)
                return
            time.sleep(_POLL_SECONDS)
        raise InfrastructureError(
            f"the supervisor of job {self.job_id} does not answer: see {self.folder.supervisor_log}"
        )

    def _refuse_older(self) -> None:
        newest = self.folder.epoch()
        if newest > self.epoch:
            raise self._fenced(newest)

    def _fenced(self, newest: int) -> FencedError:
        return FencedError(
            f"job {self.job_id} has a newer owner (epoch {newest}), "
            f"epoch {self.epoch} cannot cancel it"
        )

    def _cancel_without_supervisor(self) -> bool:
        """Cancel a job that no supervisor runs; False when one does."""
        lock = FileLock(self.folder.supervisor_lock)
        if not lock.acquire(_LIVE_SECONDS):
            return False
        try:
            status = self.folder.stored_status()
            if status is not None and not status.ended:
                kill_all(processes_of_job(self.job_id, self.home.root))
                update = {"state": "cancelled", "cancelled_by": self.epoch, "pids": {}}
                self.folder.write_status(status.model_copy(update=update))
        finally:
            lock.release()
        return True


def submit(
    home: Home, request: JobRequest, supervisor: Sequence[str] = SUPERVISOR_COMMAND
) -> JobHandle:
    """Start the job, or attach to it where it runs already.

    A job that ended or was lost starts again, in the same folder, with a higher epoch. After
    `lost` the restart counts continue; after an end they begin at 0. The supervisor outlives the
    caller, however that ends.

    Args:
        home: where state is stored.
        request: what to run.
        supervisor: the command to which `--job DIR` is added.

    Raises:
        UsageError: when the request was made for another home, or its job id belongs to another
            pipeline or line.
        ConfigError: when that home was written by another version, or when the job cannot be run
            as declared.
        InfrastructureError: when the supervisor does not start, when another job trains this
            model line, or when this job id runs with another request.
    """
    if request.home != str(home.root.absolute()):
        raise UsageError(f"the request is for home {request.home}, not {home.root.absolute()}")
    record_format(home)
    folder = JobFolder(home.job(request.job_id))
    folder.create()
    with folder.launch_lock():
        _refuse_other_line(folder, request)
        lock = FileLock(folder.supervisor_lock)
        if lock.acquire(_LIVE_SECONDS):
            try:
                epoch = folder.next_epoch()
                folder.prepare(request, epoch)
            finally:
                lock.release()
            _await_start(folder, _start(home, request.job_id, folder, supervisor))
        else:
            _refuse_other_request(folder, request)
            epoch = folder.next_epoch()
    return JobHandle(home, request.job_id, epoch)


def attach(home: Home, job_id: str) -> JobHandle:
    """Become the newest owner of a job that was submitted before, in whatever state it is.

    Raises:
        UsageError: when no such job was ever submitted.
    """
    folder = JobFolder(home.job(job_id))
    JobRequest.read(folder.path)
    with folder.launch_lock():
        return JobHandle(home, job_id, folder.next_epoch())


def _refuse_other_line(folder: JobFolder, request: JobRequest) -> None:
    """Ids of different lines differ, unless a caller made one up: such a job is never replaced."""
    if not (folder.path / REQUEST_NAME).is_file():
        return
    stored = JobRequest.read(folder.path)
    if (stored.pipeline_name, stored.line) != (request.pipeline_name, request.line):
        raise UsageError(
            f"job {request.job_id} trains line {stored.line!r} of pipeline "
            f"{stored.pipeline_name!r}: line {request.line!r} of pipeline "
            f"{request.pipeline_name!r} needs a job id of its own"
        )


def _refuse_other_request(folder: JobFolder, request: JobRequest) -> None:
    running = JobRequest.read(folder.path)
    # Windows that the job has trained meanwhile are not requested again.
    covered = all(window in running.windows for window in request.windows)
    if not covered or running.model_copy(update={"windows": request.windows}) != request:
        raise InfrastructureError(
            f"job {request.job_id} runs already, with another request: "
            "wait for its end or cancel it"
        )


def _start(
    home: Home, job_id: str, folder: JobFolder, command: Sequence[str]
) -> subprocess.Popen[bytes]:
    environment = {**os.environ, JOB_ID_NAME: job_id, ENVIRONMENT_NAME: str(home.root.absolute())}
    with folder.supervisor_log.open("ab") as log:
        process = subprocess.Popen(
            [*command, "--job", str(folder.path.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    # Whoever submitted may live on for months: the supervisor must not stay a zombie below it.
    threading.Thread(target=process.wait, name=f"reap-{job_id}", daemon=True).start()
    return process


def _await_start(folder: JobFolder, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_DEADLINE_SECONDS
    while time.monotonic() < deadline:
        code = process.poll()
        status = folder.stored_status()
        if status is not None and status.state != "submitted":
            if status.started_at is None and status.error is not None:
                raise status.error.exception()
            return
        # Another one, started by a submitter that died, may have come first: keep waiting.
        if code is not None and not is_held(folder.supervisor_lock):
            break
        time.sleep(_POLL_SECONDS)
    raise InfrastructureError(
        f"the supervisor of job {folder.path.name} did not start: see {folder.supervisor_log}"
    )
