"""The processes of one job and their restarts."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from forebay.errors import BY_EXIT_CODE, ConfigError, DataError, InfrastructureError, NotReadyError
from forebay.executors.job.folder import (
    JobFolder,
    failure_path,
    pulse_path,
    read_failure,
    registered_path,
)
from forebay.executors.job.request import JobRequest, JobStatus
from forebay.executors.planes.base import Execution, Launch, Plane
from forebay.executors.poison.suspicions import Suspicions
from forebay.executors.roles.table import Role
from forebay.executors.supervisor.commands import RoleCommand, role_environment
from forebay.system.liveness import PulseFile
from forebay.system.output.counted import counted
from forebay.system.output.error_report import ErrorReport
from forebay.system.processes.ends import how_it_ended
from forebay.system.processes.hangs import HangGuard
from forebay.system.processes.supervision import RestartPolicy, SupervisedProcess

_LOG = logging.getLogger(__name__)


class ExaminedCrashes:
    """Distinguishes ends that a payload may have caused from all others."""

    def __init__(self, job_dir: Path) -> None:
        """Ends under an earlier supervisor are forgotten; the suspicions from them are kept."""
        self._suspicions = Suspicions(job_dir)
        self._ends: dict[str, list[str]] = defaultdict(list)

    def is_examined(self, command: RoleCommand, exit_code: int, *, hung: bool) -> bool:
        """Whether an end does not count because a task will be examined for it.

        If no poison explains it afterwards, the next end counts. exit_code: a negative signal
        number if a signal ended it. hung: this supervisor sent the signal, as the process hung.
        """
        if not command.role.reads_payloads:
            return False
        end = uuid.uuid4().hex
        if exit_code >= 0:
            self._suspicions.executor_starts(command.index)
            return False
        if hung:  # it counts, since a storage that does not answer is not a payload's fault
            self._suspicions.executor_ended(command.index, -exit_code, end)
            return False
        if not self._suspicions.executor_ended(command.index, -exit_code, end):
            return False
        _LOG.info("what %s was reading will be examined", command.name)
        ends = self._ends[command.name]
        in_vain = next(filter(self._suspicions.is_in_vain, ends), None)
        if in_vain is not None:
            ends.remove(in_vain)  # this one counts in its place
        ends.append(end)
        return in_vain is None

    def starts(self, command: RoleCommand) -> None:
        if command.role.reads_payloads:
            self._suspicions.executor_starts(command.index)


# A restart does not change a wrong declaration, or bad or missing data.
FATAL_CODES = frozenset({ConfigError.exit_code, NotReadyError.exit_code, DataError.exit_code})


def role_policy(role: Role, restarts_max: int) -> RestartPolicy:
    """Ends are counted over the whole run of a job and all its supervisors.

    Only one that ends the job ends by itself: all others serve until they are stopped.
    """
    return RestartPolicy(
        restart="on_failure" if role.ends_job else "always",
        restarts_max=restarts_max,
        delay_first_seconds=0.1,
        delay_max_seconds=2.0,
        fatal_codes=FATAL_CODES,
    )


_TAIL_BYTES = 4096
_HUNG_MAX = 20
# Before the restart of a process whose end does not count.
_EXAMINED_SECONDS = 0.1


@dataclass
class RoleProcess:
    command: RoleCommand
    process: SupervisedProcess[Execution]
    guard: HangGuard


@dataclass(frozen=True)
class JobOutcome:
    """The work is over. error: None when it succeeded."""

    error: ErrorReport | None


class JobProcesses:
    def __init__(
        self,
        folder: JobFolder,
        request: JobRequest,
        plane: Plane,
        commands: list[RoleCommand],
        status: JobStatus,
    ) -> None:
        """Counts in `status` from an earlier supervisor of the same run continue."""
        self.restarts = dict(status.restarts)
        self.ends = dict(status.ends)
        self.hung = list(status.hung)
        self._folder = folder
        self._request = request
        self._plane = plane
        self._crashes = ExaminedCrashes(folder.path)
        self._failover = request.pipeline_spec().job.failover
        self._processes = {command.name: self._of(command) for command in commands}

    def _of(self, command: RoleCommand) -> RoleProcess:
        deadline = command.role.deadline(self._failover.progress_deadlines)
        guard = HangGuard(
            command.name,
            PulseFile(pulse_path(self._folder.path, command.role.name, command.index)),
            deadline.total_seconds(),
        )
        process = SupervisedProcess(
            partial(self._start, command, guard),
            role_policy(command.role, self._failover.restarts_max),
            due=0.0,
            ends_before=self.ends.get(command.name, 0),
        )
        return RoleProcess(command, process, guard)

    @property
    def pids(self) -> dict[str, int]:
        running = {name: one.process.running for name, one in self._processes.items()}
        return {name: one.identity.pid for name, one in running.items() if one is not None}

    def tick(self) -> tuple[bool, JobOutcome | None]:
        """Handle processes that ended and start those that are due.

        Whether anything changed, and the outcome when the work is over.

        Raises:
            ConfigError: when an interpreter cannot be run.
            InfrastructureError: when a process cannot be started.
        """
        ended = [
            (one, code)
            for one in self._processes.values()
            if (code := one.process.take_end()) is not None
        ]
        # A role that finished the job outranks whatever else ended in the same moment.
        ended.sort(key=lambda end: (not end[0].command.role.ends_job, end[1]))
        for one, exit_code in ended:
            outcome = self._after_end(one, exit_code)
            if outcome is not None:
                return True, outcome
        hung = self._end_hung()
        return self._start_due() or hung or bool(ended), None

    def _end_hung(self) -> bool:
        before = self.hung
        for name, one in self._processes.items():
            running = one.process.running
            if running is not None and one.guard.tick(running.identity, time.monotonic()):
                self.hung = [*self.hung, f"{name} {one.guard.reason}"][-_HUNG_MAX:]
        return self.hung is not before

    def _after_end(self, ended: RoleProcess, exit_code: int) -> JobOutcome | None:
        command, name = ended.command, ended.command.name
        _LOG.info("%s %s", name, how_it_ended(exit_code))
        if command.role.ends_job and exit_code == 0:
            return JobOutcome(None)
        failure = read_failure(self._folder.path, command.role.name, command.index)
        if failure is not None and failure.final:
            return JobOutcome(failure)
        now = time.monotonic()
        if self._crashes.is_examined(command, exit_code, hung=bool(ended.guard.reason)):
            self.restarts[command.role.name] += 1
            ended.process.start_again(now + _EXAMINED_SECONDS)
            return None
        decision = ended.process.plan(exit_code, now)
        self.ends[name] = ended.process.ends(now)
        if decision.action == "fail":
            return JobOutcome(self._failure(ended, exit_code))
        if decision.action == "restart":
            self.restarts[command.role.name] += 1
            pause = decision.delay_seconds
            _LOG.info("%s starts again in %.1f s (restart %d)", name, pause, self.ends[name])
        return None

    def _start_due(self) -> bool:
        started = False
        for name, one in self._processes.items():
            if one.process.is_due(time.monotonic()):
                execution = one.process.start()
                started = True
                _LOG.info("%s started, pid %d", name, execution.identity.pid)
        return started

    def _start(self, command: RoleCommand, guard: HangGuard) -> Execution:
        log_path = self._folder.log_path(command.role.name, command.index)
        # What an earlier process left must neither be taken as the reason for this one's end nor
        # direct others to a socket where nothing listens.
        failure_path(self._folder.path, command.role.name, command.index).unlink(missing_ok=True)
        (self._folder.path / "endpoints" / f"{command.role.name}.json").unlink(missing_ok=True)
        if command.role.reads_payloads:
            registered_path(self._folder.path, command.index).unlink(missing_ok=True)
        self._crashes.starts(command)
        with log_path.open("a") as log:
            log.write(f"--- {command.name} starts at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n")
        guard.begin(time.monotonic())
        temporary = self._folder.new_temporary(command.role.name, command.index)
        environment = role_environment(os.environ, self._request, command.role, temporary)
        return self._plane.start(
            Launch(command.role.name, command.index, command.command, environment, log_path)
        )

    def _failure(self, ended: RoleProcess, exit_code: int) -> ErrorReport:
        """What the process itself wrote, or else its exit code and its last log line."""
        command = ended.command
        written = read_failure(self._folder.path, command.role.name, command.index)
        if written is not None:
            return written
        log_path = self._folder.log_path(command.role.name, command.index)
        if ended.guard.reason:
            return ErrorReport.of(
                InfrastructureError(
                    f"{command.name} {ended.guard.reason}; it has ended "
                    f"{counted(self.ends[command.name], 'time')}, and the stacks of its threads "
                    f"are in its log: {log_path}"
                )
            )
        last = _last_line(log_path)
        return ErrorReport(
            error="ProcessEnded",
            message=f"{command.name} {how_it_ended(exit_code)}: {last} (log: {log_path})",
            # Without a failure file, 1 is Python's own code (an import that failed), not ours.
            exit_code=exit_code
            if exit_code in BY_EXIT_CODE.keys() - {1}
            else InfrastructureError.exit_code,
        )


def _last_line(path: Path) -> str:
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = log.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it wrote no log"
