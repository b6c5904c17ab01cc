"""The local plane of a runner: processes stay, and run one job of the line after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from forebay.executors.link.role_calls import AHEAD_NAME, CHANNEL_NAME, ProcessCalls
from forebay.executors.planes.base import Ended, EndReason, Launch, Resized, Usage
from forebay.executors.planes.local import LocalExecution, LocalPlane
from forebay.executors.roles.resources import Resources
from forebay.executors.roles.table import roles
from forebay.system.processes.children import wait_or_kill
from forebay.system.processes.identity import ProcessIdentity
from forebay.system.processes.parent import JOB_ID_NAME

_POLL_SECONDS = 0.002


class StandingExecution:
    """An `Execution`: one job in a process that stays. Its exit code is 0 when the job is over."""

    def __init__(
        self,
        process: LocalExecution,
        calls: ProcessCalls,
        environment: Mapping[str, str],
        *,
        is_over: bool = False,
    ) -> None:
        """is_over: whether the process has no job, but waits for its first."""
        self.process, self.calls, self._environment = process, calls, environment
        self._before = process.usage() or Usage()
        self.is_over = is_over

    @property
    def identity(self) -> ProcessIdentity:
        return self.process.identity

    @property
    def limits(self) -> Resized:
        return self.process.limits

    def poll(self) -> int | None:
        self.is_over = self.is_over or self.calls.is_over()
        return 0 if self.is_over else self.process.poll()

    def ended(self) -> Ended:
        return Ended(EndReason.EXIT, 0) if self.is_over else self.process.ended()

    def resize(self, to: Resources) -> Resized:
        return self.process.resize(to)

    def usage(self) -> Usage | None:
        """CPU of this job; memory of the process."""
        found, before = self.process.usage(), self._before.cpu_seconds
        if found is None or found.cpu_seconds is None or before is None:
            return found
        return found._replace(cpu_seconds=found.cpu_seconds - before)

    def end(self, grace_seconds: float) -> None:
        self.process.end(grace_seconds)

    def again(self, launch: Launch) -> StandingExecution | None:
        """The next job in the same process; None where it has ended, or is not what is wanted."""
        same = _of_process(self.process.launch) == _of_process(launch)
        wanted = {n: v for n, v in launch.environment.items() if self._environment.get(n) != v}
        is_there = self.is_over and self.process.poll() is None
        if not same or not is_there or not self._environment.keys() <= launch.environment.keys():
            return None
        if not self.calls.begin(launch.arguments, wanted, launch.log_path):
            return None
        self.process.resize(launch.resources)
        return StandingExecution(self.process, self.calls, launch.environment)


def _of_process(launch: Launch) -> tuple[str, ...]:
    """Interpreter and module."""
    return tuple(launch.command[: len(launch.command) - len(launch.arguments)])


class StandingPlane:
    """A `Plane` for one job after the other: `stop` ends a job, `close` the processes.

    Processes of a role without a body end with their job, as does whatever is not over in time.
    """

    kills = True

    def __init__(self, runner: str, *, adopts_orphans: bool = True) -> None:
        """runner: its name, which its processes carry instead of a job's."""
        self._local = LocalPlane(runner, adopts_orphans=adopts_orphans)
        self._runner = runner
        self._bodies = frozenset(role.name for role in roles() if role.body)
        self._jobs: dict[str, StandingExecution] = {}
        self._launches: dict[str, Launch] = {}

    def start(self, launch: Launch) -> LocalExecution | StandingExecution:
        launch = replace(launch, environment={**launch.environment, JOB_ID_NAME: self._runner})
        if launch.role not in self._bodies:
            return self._local.start(launch)
        self._launches[launch.name] = launch
        before = self._jobs.pop(launch.name, None)
        again = None if before is None else before.again(launch)
        if again is None:
            if before is not None:
                before.calls.close()
                before.process.process.kill()  # no effect on one that has ended
                before.process.process.wait()
            again = self._started_new(launch)
        self._jobs[launch.name] = again
        return again

    def start_ahead(self, log: Path) -> None:
        """Start what the last job had, to wait for the next one. log: until that begins.

        Raises:
            OSError, ConfigError, InfrastructureError: when a process cannot be started.
        """
        for name, launch in self._launches.items():
            here = replace(launch, log_path=log)
            self._jobs[name] = self._started_new(here, is_ahead=True)

    def _started_new(self, launch: Launch, *, is_ahead: bool = False) -> StandingExecution:
        calls = ProcessCalls()
        number = calls.theirs.fileno()
        environment = {**launch.environment, CHANNEL_NAME: str(number)}
        environment |= {AHEAD_NAME: "1"} if is_ahead else {}
        try:
            process = self._local.start_with(replace(launch, environment=environment), (number,))
        except BaseException:
            calls.close()
            raise
        finally:
            calls.theirs.close()
        return StandingExecution(process, calls, launch.environment, is_over=is_ahead)

    def stop(self, grace_seconds: float) -> None:
        """End the job: ask its processes to be done with it, and end those that are not in time."""
        deadline = time.monotonic() + grace_seconds
        busy = [each for each in self._jobs.values() if each.poll() is None]
        for each in busy:
            each.calls.stop()
        of_jobs = {id(each.process) for each in self._jobs.values()}
        for other in self._local.running():
            if id(other) not in of_jobs:
                other.process.terminate()
        while busy and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            busy = [each for each in busy if each.poll() is None]
        stays = {id(each.process) for each in self._jobs.values() if each.is_over}
        for left in [each for each in self._local.running() if id(each) not in stays]:
            left.process.terminate()
            wait_or_kill(left.process, deadline, left.launch.name)
        for name in [name for name, each in self._jobs.items() if not each.is_over]:
            self._jobs.pop(name).calls.close()
        self._local.reap()

    def close(self, grace_seconds: float) -> None:
        """End everything."""
        self._local.stop(grace_seconds)
        for each in self._jobs.values():
            each.calls.close()
        self._jobs.clear()

    @property
    def memory_bytes(self) -> int:
        """Of its processes now."""
        found = [each.usage() for each in self._local.running()]
        return sum(each.memory_bytes or 0 for each in found if each is not None)
