"""The supervisor: one process per job that owns all others, restarts them and ends with them.

Run as `python -m forebay.executors.supervisor --job DIR` by `forebay.executors.job.handle`.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.processes import processes_of_job
from forebay.executors.job.request import JobRequest, JobStatus, Role
from forebay.executors.model_line.lease import take_lease
from forebay.executors.planes.base import Plane
from forebay.executors.planes.local import LocalPlane
from forebay.executors.role import role_arguments
from forebay.executors.supervisor.commands import ROLE_MODULES, role_commands
from forebay.executors.supervisor.processes import JobOutcome, JobProcesses
from forebay.system.error_report import ErrorReport
from forebay.system.locks import FileLock
from forebay.system.process_log import set_up_logging
from forebay.system.processes import kill_all

STOP_GRACE_SECONDS = 5.0
_TICK_SECONDS = 0.05
# Submitters and observers take this lock for moments, a second supervisor for good.
_LOCK_SECONDS = 2.0
# What a job fails of; anything else is a bug, which leaves the job `lost` and a traceback.
EXPECTED = (ForebayError, OSError, ValueError)
_LOG = logging.getLogger(__name__)


class Supervisor:
    """Runs one job from `submitted` to its end."""

    def __init__(
        self,
        job_dir: Path,
        plane: Plane,
        modules: Mapping[Role, str] = ROLE_MODULES,
        grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        """`modules` are run with `python -m`, one per role."""
        self._folder = JobFolder(job_dir)
        self._plane = plane
        self._modules = modules
        self._grace_seconds = grace_seconds
        self._terminated = False

    def run(self) -> int:
        """Run the job to its end; the result is the exit code of the process.

        Where another supervisor runs this job, or nothing is submitted, it returns at once.
        The job's lock is never released here: the kernel does it once this process is gone, so
        whoever finds it free finds no process either.
        """
        lock = FileLock(self._folder.supervisor_lock)
        if not lock.acquire(_LOCK_SECONDS):
            _LOG.info("another supervisor runs this job")
            return 0
        status = self._folder.stored_status()
        if status is None or status.state != "submitted":
            _LOG.info("nothing is submitted")
            return 0
        return self._run_submitted(status)

    def _run_submitted(self, status: JobStatus) -> int:
        lease = None
        try:
            request = JobRequest.read(self._folder.path)
            lease = take_lease(request)
            processes = self._gathered(status, request)
        except EXPECTED as error:
            _LOG.exception("the job cannot start")
            failed = self._changed(status, state="failed", error=ErrorReport.of(error))
            self._finish(failed, status.phases)
            return ErrorReport.of(error).exit_code
        else:
            return self._run_processes(status, processes)
        finally:
            if lease is not None:
                lease.release()

    def _gathered(self, status: JobStatus, request: JobRequest) -> JobProcesses:
        """All processes, not started yet; whatever an earlier supervisor left is gone."""
        left_over = processes_of_job(request.job_id, Path(request.home))
        if left_over:
            _LOG.info("ending %d processes of an earlier supervisor", len(left_over))
            kill_all(left_over)
        spec = request.pipeline_spec().job
        commands = role_commands(spec, self._folder.path, self._modules)
        return JobProcesses(
            self._folder, request, self._plane, commands, status.restarts, status.ends
        )

    def _run_processes(self, status: JobStatus, processes: JobProcesses) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._terminate)
        now = datetime.now(UTC)
        waited = max(0.0, (now - status.submitted_at).total_seconds())
        status = self._changed(status, state="running", started_at=now, phases={"start": waited})
        status = self._with_processes(status, processes)
        self._folder.write_status(status)
        began = time.monotonic()
        try:
            end = self._supervise(processes, status)
        except EXPECTED as error:
            _LOG.exception("the job fails")
            end = self._changed(status, state="failed", error=ErrorReport.of(error))
        finally:
            ran = time.monotonic() - began
            self._plane.stop(self._grace_seconds)
        stopped = time.monotonic() - began - ran
        end = self._with_processes(end, processes)
        self._finish(end, {**status.phases, "run": ran, "stop": stopped})
        return end.error.exit_code if end.error is not None else 0

    def _supervise(self, processes: JobProcesses, status: JobStatus) -> JobStatus:
        """Tick until the job is over; the result is the status without its last facts."""
        while True:
            changed, outcome = processes.tick()
            if changed:
                status = self._with_processes(status, processes)
                self._folder.write_status(status)
            if outcome is not None:
                return self._ended(status, outcome)
            if self._terminated:
                error = InfrastructureError("the supervisor was told to stop by a signal")
                return self._changed(status, state="failed", error=ErrorReport.of(error))
            epoch = self._accepted_cancel(status)
            if epoch is not None:
                return self._changed(status, state="cancelled", cancelled_by=epoch)
            time.sleep(_TICK_SECONDS)

    def _ended(self, status: JobStatus, outcome: JobOutcome) -> JobStatus:
        if outcome.error is None:
            return self._changed(status, state="succeeded")
        _LOG.error("the job fails: %s", outcome.error.message)
        return self._changed(status, state="failed", error=outcome.error)

    def _accepted_cancel(self, status: JobStatus) -> int | None:
        """The epoch of an open cancel request that comes from the newest owner."""
        if self._folder.cancel_request() is None:
            return None
        lock = FileLock(self._folder.launch_lock_path)
        if not lock.acquire(_TICK_SECONDS):
            return None  # the next tick looks again
        try:
            request = self._folder.cancel_request()
            accepted = request is not None and request.epoch >= self._folder.epoch()
            if request is not None and accepted:
                # Stored before it is done: a later attachment cannot take it back.
                told = self._changed(status, cancelled_by=request.epoch)
                self._folder.write_status(told)
            self._folder.drop_cancel()
        finally:
            lock.release()
        if request is None:
            return None
        _LOG.info("cancel by epoch %d: %s", request.epoch, "accepted" if accepted else "refused")
        return request.epoch if accepted else None

    def _finish(self, end: JobStatus, phases: dict[str, float]) -> None:
        """Store the last status of this run: no process is left but this one."""
        end = self._changed(
            end,
            pids={},
            ended_at=datetime.now(UTC),
            phases={name: round(seconds, 3) for name, seconds in phases.items()},
        )
        _LOG.info("the job is over: %s", end.state)
        self._folder.write_status(end)

    def _with_processes(self, status: JobStatus, processes: JobProcesses) -> JobStatus:
        return self._changed(
            status,
            restarts=dict(processes.restarts),
            ends=dict(processes.ends),
            pids={"supervisor": os.getpid(), **processes.pids},
        )

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self._terminated = True

    @staticmethod
    def _changed(status: JobStatus, **changes: Any) -> JobStatus:
        return status.model_copy(update=changes)


def main(arguments: list[str] | None = None) -> None:
    """Run the job in a folder."""
    job_dir: Path = role_arguments("supervisor", arguments).job
    set_up_logging("supervisor")
    raise SystemExit(Supervisor(job_dir, LocalPlane(adopts_orphans=True)).run())
