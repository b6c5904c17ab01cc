"""The processes of one job and their restarts."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from forebay.errors import BY_EXIT_CODE, ConfigError, DataError, InfrastructureError, NotReadyError
from forebay.executors.job.request import JobRequest, JobStatus
from forebay.executors.job.suspicions import Suspicions
from forebay.executors.link.protocol import JobLink, ProcessLink
from forebay.executors.planes.base import Ended, EndReason, Execution, Launch, Plane, Resized, Usage
from forebay.executors.roles.resources import Desired, Resources
from forebay.executors.roles.table import Role
from forebay.executors.supervisor.commands import RoleCommand, RoleCommands, role_environment
from forebay.executors.supervisor.reconcile import Action, End, Seen, Start, actions, newer
from forebay.system.liveness import PulseFile
from forebay.system.output.counted import counted
from forebay.system.output.error_report import ErrorReport
from forebay.system.processes.ends import how_it_ended
from forebay.system.processes.hangs import HangGuard
from forebay.system.processes.supervision import RestartPolicy, SupervisedProcess

_LOG = logging.getLogger(__name__)


class ExaminedCrashes:
    """Distinguishes ends that a payload may have caused from all others."""

    def __init__(self, suspicions: Suspicions) -> None:
        """Ends under an earlier supervisor are forgotten; the suspicions from them are kept."""
        self._suspicions = suspicions
        self._ends: dict[str, list[str]] = defaultdict(list)

    def is_examined(self, command: RoleCommand, how: Ended, *, hung: bool) -> bool:
        """Whether an end does not count because a task will be examined for it.

        If no poison explains it afterwards, the next end counts. hung: this supervisor sent the
        signal, as the process hung.
        """
        if not command.role.reads_payloads:
            return False
        end = uuid.uuid4().hex
        # A limit that is too low says nothing against what was read: it would be set aside.
        if how.exit_code >= 0 or how.reason is EndReason.OOM:
            self._suspicions.executor_starts(command.index)
            return False
        if hung:  # it counts, since a storage that does not answer is not a payload's fault
            self._suspicions.executor_ended(command.index, -how.exit_code, end)
            return False
        if not self._suspicions.executor_ended(command.index, -how.exit_code, end):
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
# Between the request to a process that is one too many and SIGKILL.
_RETIRE_SECONDS = 5.0
# Before the restart of a process whose end does not count.
_EXAMINED_SECONDS = 0.1


@dataclass
class RoleProcess:
    """One process of the job, whether it runs or not.

    asked: the limits that its plane was last asked for. oom_bytes: its limit at its last end for
    want of memory. is_ending: it is one too many.
    """

    command: RoleCommand
    link: ProcessLink
    process: SupervisedProcess[Execution]
    guard: HangGuard
    asked: Resources | None = None
    oom_bytes: int | None = None
    is_ending: bool = False

    @property
    def seen(self) -> Seen:
        return Seen(
            self.command.role.name,
            self.command.index,
            is_running=self.process.running is not None,
            due=self.process.due,
            is_ready=self.guard.is_alive,
            is_ending=self.is_ending,
            asked=self.asked,
        )


@dataclass(frozen=True)
class JobOutcome:
    """The work is over. error: None when it succeeded."""

    error: ErrorReport | None


class JobProcesses:
    def __init__(
        self,
        link: JobLink,
        request: JobRequest,
        plane: Plane,
        commands: RoleCommands,
        status: JobStatus,
        desired: Desired,
    ) -> None:
        """Counts in `status` from an earlier supervisor of the same run continue.

        unmet: why limits of a process do not hold as wanted, by its name.
        """
        self.restarts = Counter(status.restarts)
        self.ends = dict(status.ends)
        self.hung = list(status.hung)
        self.unmet: dict[str, str] = {}
        self.registered: set[str] = set()
        self.desired = desired
        self._link = link
        self._request = request
        self._run_epoch, self._starts = status.epoch, Counter[str]()
        self._plane = plane
        self._commands = commands
        self._crashes = ExaminedCrashes(link.suspicions)
        self._failover = request.pipeline_spec().job.failover
        self._processes: dict[str, RoleProcess] = {}
        self._acted_on = 0

    def _of(self, role: str, index: int) -> RoleProcess:
        command = self._commands.of(role, index)
        if command.name not in self._processes:
            self._processes[command.name] = self._made(command)
        return self._processes[command.name]

    def _made(self, command: RoleCommand) -> RoleProcess:
        link = self._link.process(command.role.name, command.index)
        guard = HangGuard(
            command.name,
            PulseFile(link.pulse),
            command.role.deadline(self._failover.progress_deadlines).total_seconds(),
        )
        process = SupervisedProcess(
            partial(self._start, command, link, guard),
            role_policy(command.role, self._failover.restarts_max),
            ends_before=self.ends.get(command.name, 0),
        )
        return RoleProcess(command, link, process, guard)

    @property
    def pids(self) -> dict[str, int]:
        running = {name: one.process.running for name, one in self._processes.items()}
        return {name: one.identity.pid for name, one in running.items() if one is not None}

    def usages(self) -> dict[str, Usage]:
        """Of all that run."""
        running = {name: one.process.running for name, one in self._processes.items()}
        found = {name: one.usage() for name, one in running.items() if one is not None}
        return {name: each for name, each in found.items() if each is not None}

    def want(self, found: Desired | None) -> None:
        """From the next tick on."""
        self.desired = newer(self.desired, found)

    def stop(self, grace_seconds: float) -> None:
        """End all of them; returns when they are gone."""
        self._plane.stop(grace_seconds)

    def tick(self) -> tuple[bool, JobOutcome | None]:
        """Handle processes that ended and do what is due.

        Whether anything changed, and the outcome when the work is over.

        Raises:
            ConfigError: when an interpreter cannot be run.
            InfrastructureError: when a process cannot be started.
        """
        ended = []
        for one in self._processes.values():
            execution = one.process.running
            if one.process.take_end() is not None and execution is not None:
                ended.append((one, execution.ended()))
        # A role that finished the job outranks whatever else ended in the same moment.
        ended.sort(key=lambda end: (not end[0].command.role.ends_job, end[1].exit_code))
        for one, how in ended:
            outcome = self._after_end(one, how)
            if outcome is not None:
                return True, outcome
        changed = [bool(ended), self._end_hung(), self._look_registered(), self._act()]
        return any(changed), None

    def _end_hung(self) -> bool:
        before = self.hung
        if not self._plane.kills:
            return False
        for name, one in self._processes.items():
            running = one.process.running
            if running is not None and one.guard.tick(running.identity, time.monotonic()):
                self.hung = [*self.hung, f"{name} {one.guard.reason}"][-_HUNG_MAX:]
        return self.hung is not before

    def _look_registered(self) -> bool:
        """A data executor that starts again is not registered until it has told so anew."""
        before, reading = self.registered, set[str]()
        for name, one in self._processes.items():
            if one.command.role.reads_payloads and one.process.running is not None:
                is_known = name in before or one.link.is_registered()
                reading.update([name] if is_known else [])
        self.registered = reading
        return reading != before

    def _after_end(self, ended: RoleProcess, how: Ended) -> JobOutcome | None:
        command, name = ended.command, ended.command.name
        detail = f" ({how.reason}: {how.detail})" if how.detail else ""
        _LOG.info("%s %s%s", name, how_it_ended(how.exit_code), detail)
        self.unmet.pop(name, None)
        if ended.is_ending:
            del self._processes[name]
            return None
        if command.role.ends_job and how.exit_code == 0:
            return JobOutcome(None)
        failure = ended.link.failure()
        if failure is not None and failure.final:
            return JobOutcome(failure)
        if self._crashes.is_examined(command, how, hung=bool(ended.guard.reason)):
            self.restarts[command.role.name] += 1
            ended.process.start_again(time.monotonic() + _EXAMINED_SECONDS)
            return None
        return self._after_counted_end(ended, how)

    def _after_counted_end(self, ended: RoleProcess, how: Ended) -> JobOutcome | None:
        name, now = ended.command.name, time.monotonic()
        if how.reason is EndReason.OOM and (error := self._memory_error(ended, how)) is not None:
            return JobOutcome(ErrorReport.of(error))
        decision = ended.process.plan(how.exit_code, now)
        self.ends[name] = ended.process.ends(now)
        if decision.action == "fail":
            return JobOutcome(self._failure(ended, how.exit_code))
        if decision.action == "restart":
            self.restarts[ended.command.role.name] += 1
            pause = decision.delay_seconds
            _LOG.info("%s starts again in %.1f s (restart %d)", name, pause, self.ends[name])
        return None

    def _memory_error(self, ended: RoleProcess, how: Ended) -> ConfigError | None:
        """A second start with as much memory as the first gets one chance: peaks differ."""
        role, name = ended.command.role, ended.command.name
        before, limit = ended.oom_bytes, self.desired.resources[role.name].memory_bytes
        ended.oom_bytes = limit
        if before is None or before != limit:
            return None
        way_out = f"raise job.roles.{role.block}.memory" if role.block else "give it more"
        return ConfigError(f"{name} was ended twice for want of memory: {how.detail}: {way_out}")

    def _act(self) -> bool:
        seen = [one.seen for one in self._processes.values()]
        found = actions(self.desired, seen, time.monotonic())
        for action in found:
            self._do(action, self._of(action.role, action.index))
        is_new, self._acted_on = self._acted_on != self.desired.version, self.desired.version
        return is_new or bool(found)

    def _do(self, action: Action, one: RoleProcess) -> None:
        running, name = one.process.running, one.command.name
        if isinstance(action, End):
            one.is_ending = True
            if running is None:
                del self._processes[name]
            else:
                running.end(_RETIRE_SECONDS)
            return
        if isinstance(action, Start):
            one.asked = self.desired.resources[action.role].without_cpu
            limits = one.process.start().limits
            _LOG.info("%s started, pid %d", name, self.pids[name])
        elif running is not None:
            one.asked = action.to
            limits = running.resize(action.to)
        self._note(name, limits)

    def _note(self, name: str, limits: Resized) -> None:
        before = self.unmet.pop(name, "")
        if limits.outcome != "applied":
            self.unmet[name] = limits.reason
            if limits.reason != before:
                _LOG.warning("%s: %s", name, limits.reason)

    def _start(self, command: RoleCommand, link: ProcessLink, guard: HangGuard) -> Execution:
        role, index = command.role.name, command.index
        self._starts[command.name] += 1
        arguments = command.arguments(self._run_epoch, self._starts[command.name])
        link.forget()
        self.registered.discard(command.name)
        self._crashes.starts(command)
        with link.log.open("a") as log:
            log.write(f"--- {command.name} starts at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n")
        guard.begin(time.monotonic())
        environment = role_environment(
            os.environ, self._request, command.role, link.new_temporary()
        )
        limits = self.desired.resources[role].without_cpu
        full = (*command.interpreter, *arguments)
        launch = Launch(role, index, full, environment, link.log, limits, arguments)
        return self._plane.start(launch)

    def _failure(self, ended: RoleProcess, exit_code: int) -> ErrorReport:
        """What the process itself wrote, or else its exit code and its last log line."""
        command = ended.command
        written = ended.link.failure()
        if written is not None:
            return written
        log_path = ended.link.log
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
