"""The local plane: child processes of the supervisor on its own machine, in control groups."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from functools import cached_property

from forebay.config.specs.base import format_mib
from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.planes.base import Ended, EndReason, Launch, Outcome, Resized, Usage
from forebay.executors.roles.resources import UNLIMITED, Resources
from forebay.system.processes.cgroups import ControlGroup, ControlGroups
from forebay.system.processes.children import Children, wait_or_kill
from forebay.system.processes.ends import KILLED
from forebay.system.processes.identity import ProcessIdentity, usage_of
from forebay.system.processes.parent import PARENT_PID_NAME, adopt_orphans

_NOT_LIMITED = Resized("applied")
# Of a limit: what does not fit is refused at once, so a peak may stay that far below.
_NEAR = 0.9


class LocalGroups:
    """The control groups of one job, found and made once a process is to be limited."""

    def __init__(self, job: str) -> None:
        """job: see `MakePlane`."""
        self._name = f"{job}:"
        self._made: dict[str, ControlGroup] = {}

    @cached_property
    def here(self) -> ControlGroups:
        groups = ControlGroups.found()
        groups.remove_left(self._name)
        return groups

    def make(self, process: str, pid: int) -> ControlGroup:
        """The group of a process that runs; one of an earlier process of this name is gone.

        Raises:
            InfrastructureError: when processes are left in that, or this one cannot be moved.
        """
        group = self._made[process] = self.here.make(f"{self._name}{process}")
        if reason := group.add(pid):
            raise InfrastructureError(reason)
        return group

    def remove(self) -> None:
        for group in self._made.values():
            group.remove()


class LocalExecution:
    """A child, in a control group of its own from the first limit on that it is given.

    Children that it has started before that are not in the group.
    """

    def __init__(
        self, launch: Launch, process: subprocess.Popen[bytes], groups: LocalGroups
    ) -> None:
        """The child is not reaped before `poll` is called, so its identity can be read."""
        identity = ProcessIdentity.of(process.pid)
        if identity is None:
            raise InfrastructureError("/proc is not readable: Forebay needs a mounted /proc")
        self.launch = launch
        self.identity = identity
        self.process = process
        self.limits = _NOT_LIMITED
        self._asked = UNLIMITED
        self._memory_bytes: int | None = None  # the limit that holds
        self._groups = groups
        self._group: ControlGroup | None = None
        self._kill_at: float | None = None

    def poll(self) -> int | None:
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self.process.kill()
        return self.process.poll()

    def ended(self) -> Ended:
        """As in the protocol. A child that the kernel ended for want of memory counts too.

        Below its limit, the memory of the machine ran out, or that of a group above: a higher limit
        would not help.
        """
        code, limit = self.process.returncode, self._memory_bytes
        used = self._group.usage() if self._group is not None and code == KILLED else None
        if used is None or not used.oom_kills or limit is None:
            return Ended(EndReason.SIGNAL if code < 0 else EndReason.EXIT, code)
        peak = used.memory_peak_bytes
        if peak is not None and peak < _NEAR * limit:
            return Ended(EndReason.SIGNAL, code)
        known = [format_mib(count) for count in (peak, limit) if count is not None]
        return Ended(EndReason.OOM, code, f"peak {' of '.join(known)}")

    def resize(self, to: Resources) -> Resized:
        if to != self._asked:
            self.limits, self._asked = self._resized(to), to
        return self.limits

    def _resized(self, to: Resources) -> Resized:
        here = self._groups.here
        wanted = (
            ("memory", to.memory_bytes, here.memory_refusal),
            ("cpu", to.cpu_cores, here.cpu_refusal),
        )
        unsupported = [
            f"{name} cannot be limited: {refusal}"
            for name, limit, refusal in wanted
            if limit is not None and refusal
        ]
        try:
            refused = self._refused(to)
        except InfrastructureError as error:
            refused = [str(error)]
        outcome: Outcome = "infeasible" if refused else "unsupported" if unsupported else "applied"
        return Resized(outcome, "; ".join([*refused, *unsupported]))

    def _refused(self, to: Resources) -> list[str]:
        """Set what can be set; why something of it cannot be."""
        here = self._groups.here
        if here.memory_refusal and here.cpu_refusal:
            return []
        if self._group is None:
            self._group = self._groups.make(self.launch.name, self.identity.pid)
        memory = "" if here.memory_refusal else self._memory_refused(self._group, to.memory_bytes)
        cpu = "" if here.cpu_refusal else self._group.limit_cpu(to.cpu_cores)
        named = (("memory", memory), ("cpu", cpu))
        return [f"{name} stays as it is: {reason}" for name, reason in named if reason]

    def _memory_refused(self, group: ControlGroup, memory_bytes: int | None) -> str:
        if memory_bytes is not None and self.launch.resources.memory_bytes is None:
            return "it started without a limit, so what it has is not counted: after its next start"
        reason = group.limit_memory(memory_bytes)
        if not reason:
            self._memory_bytes = memory_bytes
        return reason

    def usage(self) -> Usage | None:
        found = usage_of(self.identity)
        if found is None:
            return None
        used = self._group.usage() if self._group is not None else None
        throttled_seconds = used.throttled_seconds if used is not None else None
        return Usage(found.cpu_seconds, throttled_seconds, *found[1:])

    def end(self, grace_seconds: float) -> None:
        self.process.terminate()
        self._kill_at = time.monotonic() + grace_seconds


class LocalPlane:
    """Starts processes with subprocess; they end with this process, however it ends."""

    kills = True

    def __init__(self, job: str, *, adopts_orphans: bool = True) -> None:
        """With `adopts_orphans`, all other children of this process count as orphans.

        Only for a process that starts children only through this plane.
        """
        self._adopts_orphans = adopts_orphans
        self._children = Children()
        self._groups = LocalGroups(job)
        self._started: list[LocalExecution] = []
        if adopts_orphans:
            adopt_orphans()

    def start(self, launch: Launch) -> LocalExecution:
        return self.start_with(launch)

    def start_with(self, launch: Launch, descriptors: Sequence[int] = ()) -> LocalExecution:
        """descriptors: others that the process inherits."""
        environment = {**launch.environment, PARENT_PID_NAME: str(os.getpid())}
        with launch.log_path.open("ab") as log:
            try:
                process = self._children.start(
                    launch.command, environment, log, descriptors=descriptors
                )
            except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
                raise ConfigError(
                    f"the interpreter of role {launch.role} cannot be run: {error}"
                ) from error
            except OSError as error:
                raise InfrastructureError(f"cannot start {launch.name}: {error}") from error
        execution = LocalExecution(launch, process, self._groups)
        self._started = [*self.running(), execution]
        execution.resize(launch.resources)
        return execution

    def stop(self, grace_seconds: float) -> None:
        """As in the protocol; returns when every process is gone."""
        running = self.running()
        for execution in running:
            execution.process.terminate()
        deadline = time.monotonic() + grace_seconds
        for execution in running:
            wait_or_kill(execution.process, deadline, execution.launch.name)
        if self._adopts_orphans:
            self._children.end_orphans()
        self._groups.remove()

    def reap(self) -> None:
        """Reap adopted processes that ended, as a supervisor that stays has to."""
        if self._adopts_orphans:
            self._children.reap_orphans()

    def running(self) -> list[LocalExecution]:
        """Executions whose end nobody has seen yet."""
        return [one for one in self._started if one.process.returncode is None]
