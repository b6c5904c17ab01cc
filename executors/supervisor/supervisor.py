"""The supervisor: one process per job that owns all others, restarts them and ends with them.

Run as `python -m forebay.executors.supervisor --job DIR` by `forebay.executors.job.submit`.
"""

from __future__ import annotations

import argparse
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.job import job_rows
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.job_rows import JobRow
from forebay.executors.job.request import JobRequest, JobStatus
from forebay.executors.link.role_calls import append_output
from forebay.executors.model_line.lease import take_lease
from forebay.executors.planes.base import Plane
from forebay.executors.planes.named import make_plane
from forebay.executors.roles.resources import Desired
from forebay.executors.roles.table import SUPERVISOR, Role, roles
from forebay.executors.supervisor.commands import RoleCommands
from forebay.executors.supervisor.processes import JobProcesses
from forebay.executors.supervisor.reporter import StateReporter
from forebay.executors.supervisor.sampler import Sampler
from forebay.home.database.open import database_of
from forebay.home.runtime import processes_of_job
from forebay.system.files.locks import FileLock
from forebay.system.output.error_report import ErrorReport
from forebay.system.processes.ends import when_told_to_end
from forebay.system.processes.identity import kill_all

STOP_GRACE_SECONDS = 5.0
_TICK_SECONDS = 0.05
# Observers take this lock for moments, another supervisor keeps it.
_LOCK_SECONDS = 2.0
# Whoever stopped the supervisor does not wait for a database that is away.
_STOPPED_SECONDS = 20.0
# Errors that make a job fail; anything else is a bug, which leaves a traceback and a `lost` job.
EXPECTED = (ForebayError, OSError, ValueError)
_LOG = logging.getLogger(__name__)


class Supervisor:
    def __init__(
        self,
        job: Path,
        table: Sequence[Role],
        grace_seconds: float = STOP_GRACE_SECONDS,
        lock: int | None = None,
        plane: Plane | None = None,
    ) -> None:
        """`job`: its folder. `table`: its roles. `lock`: an inherited descriptor.

        The submitter passes the lock to the process that it starts. plane: by default the job's.
        """
        self._folder = JobFolder(job)
        self._table = table
        self._grace_seconds = grace_seconds
        self._descriptor = lock
        self._plane = plane
        self._terminated = False

    def run(self) -> int:
        """Run the job to its end; the result is the exit code of the process.

        If another supervisor runs this job, or nothing is submitted, it returns at once.
        The job's lock is never released here: the kernel does it once this process is gone, so if
        the lock is free, there is no process either.
        """
        lock = self._locked()
        if lock is None:
            _LOG.info("another supervisor runs this job")
            return 0
        lock.write(SUPERVISOR)
        row = database_of(self._folder.home).read(
            lambda rows: job_rows.find(rows, self._folder.job_id)
        )
        if row is None or row.state != "submitted":
            _LOG.info("nothing is submitted")
            return 0
        return self._run_submitted(row)

    def _locked(self) -> FileLock | None:
        if self._descriptor is not None:
            lock = FileLock.inherited(self._folder.supervisor_lock, self._descriptor)
            if lock is not None:
                return lock
        # It was started by hand, or something in between did not pass the descriptor on.
        lock = FileLock(self._folder.supervisor_lock)
        return lock if lock.acquire(_LOCK_SECONDS) else None

    def _run_submitted(self, row: JobRow) -> int:
        lease, status = None, row.status
        reporter = StateReporter(self._folder, status)
        try:
            request = self._folder.request("the supervisor")
            lease = take_lease(request)
            processes = self._gathered(status, request, lease.epoch, row.wanted)
        except EXPECTED as error:
            _LOG.exception("the job cannot start")
            failed = self._changed(status, state="failed", error=ErrorReport.of(error))
            self._finish(reporter, failed, status.phases)
            return ErrorReport.of(error).exit_code
        else:
            return self._run_processes(status, processes, reporter)
        finally:
            if lease is not None:
                lease.release()

    def _gathered(
        self, status: JobStatus, request: JobRequest, lease_epoch: int, desired: Desired
    ) -> JobProcesses:
        """All processes, not started yet; whatever an earlier supervisor left is gone."""
        left_over = processes_of_job(request.job_id, Path(request.home))
        if left_over:
            _LOG.info("ending %d processes of an earlier supervisor", len(left_over))
            kill_all(left_over)
        spec = request.pipeline_spec().job
        commands = RoleCommands(self._table, spec, self._folder.arguments, lease_epoch)
        plane = self._plane or make_plane(spec.plane, self._folder.name)
        return JobProcesses(self._folder, request, plane, commands, status, desired)

    def _run_processes(
        self, status: JobStatus, processes: JobProcesses, reporter: StateReporter
    ) -> int:
        if threading.current_thread() is threading.main_thread():  # only there signals arrive
            when_told_to_end(self._terminate)
        now = datetime.now(UTC)
        waited = max(0.0, (now - status.submitted_at).total_seconds())
        status = self._changed(status, state="running", started_at=now, phases={"start": waited})
        began = time.monotonic()
        try:
            end = self._supervise(processes, status, reporter)
        except EXPECTED as error:
            _LOG.exception("the job fails")
            end = self._changed(status, state="failed", error=ErrorReport.of(error))
        finally:
            ran = time.monotonic() - began
            processes.stop(self._grace_seconds)
        stopped = time.monotonic() - began - ran
        end = self._with_processes(end, processes)
        self._finish(reporter, end, {**status.phases, "run": ran, "stop": stopped})
        return end.error.exit_code if end.error is not None else 0

    def _supervise(
        self, processes: JobProcesses, status: JobStatus, reporter: StateReporter
    ) -> JobStatus:
        """Tick until the job is over; the result is the status without its last facts."""
        sampler = Sampler(self._folder, status.peaks)
        while True:
            processes.want(reporter.desired)
            if sampler.is_due():
                sampler.sample(processes.usages)
                status = self._changed(status, peaks=dict(sampler.peaks))
            changed, outcome = processes.tick()
            if outcome is not None:
                if outcome.error is None:
                    return self._changed(status, state="succeeded")
                _LOG.error("the job fails: %s", outcome.error.message)
                return self._changed(status, state="failed", error=outcome.error)
            if changed:  # at first when all processes were started
                status = self._with_processes(status, processes)
                reporter.report(status)
            error = reporter.problem
            if self._terminated:
                error = InfrastructureError("the supervisor was stopped by a signal")
            if error is not None:
                _LOG.error("the job fails: %s", error)
                return self._changed(status, state="failed", error=ErrorReport.of(error))
            if reporter.cancelled_by is not None:
                return self._changed(status, state="cancelled", cancelled_by=reporter.cancelled_by)
            if self._folder.take_poke():
                reporter.look()
            time.sleep(_TICK_SECONDS)

    def _finish(self, reporter: StateReporter, end: JobStatus, phases: dict[str, float]) -> None:
        """Store the last status of this run: only this process is left."""
        end = self._changed(
            end,
            pids={},
            ended_at=datetime.now(UTC),
            phases={name: round(seconds, 3) for name, seconds in phases.items()},
        )
        _LOG.info("the job is over: %s", end.state)
        try:
            self._folder.close()
        except InfrastructureError as error:  # worthless, they go with the job's folder
            _LOG.warning("sockets of the job's processes were not removed: %s", error)
        if not reporter.finish(end, _STOPPED_SECONDS if self._terminated else None):
            _LOG.error("this could not be stored: the job counts as lost and may be run again")

    def _with_processes(self, status: JobStatus, processes: JobProcesses) -> JobStatus:
        return self._changed(
            status,
            restarts=dict(processes.restarts),
            ends=dict(processes.ends),
            registered=len(processes.registered),
            unmet=dict(processes.unmet),
            acted_on=processes.desired.version,
            hung=list(processes.hung),
            pids={SUPERVISOR: os.getpid(), **processes.pids},
        )

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self._terminated = True

    @staticmethod
    def _changed(status: JobStatus, **changes: Any) -> JobStatus:
        return status.model_copy(update=changes)


def supervisor_arguments(arguments: list[str] | None) -> tuple[Path, int | None]:
    """The job's folder and the descriptor of its lock, from a command line or (None) `sys.argv`.

    Raises:
        SystemExit: when the arguments are wrong.
    """
    parser = argparse.ArgumentParser(prog="forebay.executors.supervisor")
    parser.add_argument("--job", type=Path, required=True)
    parser.add_argument("--lock", type=int)
    found = parser.parse_args(arguments)
    return found.job, found.lock


def request_of(job: Path) -> JobRequest:
    """What the job in this folder is to do.

    Raises:
        ForebayError: when it cannot be read.
    """
    return JobFolder(job).request("the supervisor")


def taken_over(job: Path, descriptor: int) -> FileLock | None:
    """The lock of a job that was handed to this process, whose output goes to its log from now on.

    None where the descriptor is of something else.
    """
    folder = JobFolder(job)
    held = FileLock.inherited(folder.supervisor_lock, descriptor)
    if held is None:
        os.close(descriptor)
        _LOG.error("the lock of job %s is not what was handed over", folder.job_id)
        return None
    append_output(folder.supervisor_log)
    return held


def run_held(
    job: Path, held: FileLock, plane: Plane | None = None, over: Callable[[], None] | None = None
) -> int:
    """Run the job in this folder, whose lock this process holds; its exit code.

    The lock is free once nothing that trains runs any more; `over` is called just before.
    """
    own = held.shared()
    try:
        return Supervisor(job, roles(), lock=own.descriptor, plane=plane).run()
    finally:
        own.leave()  # a supervisor leaves that to the end of its process
        if over is not None:
            over()
        held.release()
