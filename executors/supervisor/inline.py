"""The plane `inline`: supervisor and roles are threads of the process that submits the job.

For tests, notebooks and small jobs: rows, calls, seals and the database are as with processes, and
nothing has to start. What only processes can do is missing: no role is killed, limited or watched
for hangs, and a payload that kills its reader ends the whole process. The job ends with it too.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from forebay.errors import ConfigError
from forebay.executors.link.role_calls import Stop
from forebay.executors.planes.base import Ended, EndReason, Launch, Resized
from forebay.executors.role import Given, run_in_thread
from forebay.executors.roles.resources import UNLIMITED, Resources
from forebay.executors.roles.table import Role, roles
from forebay.executors.supervisor.supervisor import run_held
from forebay.system.files.locks import FileLock
from forebay.system.processes.identity import ProcessIdentity

_NO_LIMITS = Resized("unsupported", "roles of the plane inline have no limits of their own")
_LOG = logging.getLogger(__name__)


class _ThisProcess(ProcessIdentity):
    """A signal to a role would end what it runs in."""

    def signal(self, number: signal.Signals) -> bool:
        _LOG.warning("signal %d is not sent: the role is a thread", number)
        return False


class _Thread:
    """Something that runs in a thread of its own; `stop` asks it to end."""

    def __init__(self, name: str, work: Callable[[], int]) -> None:
        """work: returns the exit code."""
        self._work, self._code = work, -signal.SIGABRT
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else self._code

    def join(self, seconds: float | None) -> bool:
        """Whether it has ended within so many seconds; None waits until it has."""
        self._thread.join(None if seconds is None else max(0.0, seconds))
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._code = self._work()


class InlineExecution(_Thread):
    """An `Execution`."""

    def __init__(self, launch: Launch, role: Role) -> None:
        """Raises ConfigError for a role that runs in processes only."""
        if not role.body:
            raise ConfigError(f"job.plane: inline: role {role.name!r} runs in processes only")
        self.identity: ProcessIdentity = _ThisProcess(pid=os.getpid(), create_time=0)
        self.name, self.limits = launch.name, self.resize(launch.resources)
        self.trains_line = role.trains_line
        self._stop = Stop()

        def run(given: Given) -> None:
            module, _, function = role.body.partition(":")
            getattr(import_module(module), function)(given)

        super().__init__(
            launch.name, lambda: run_in_thread(role, run, launch.arguments, self._stop)
        )

    def ended(self) -> Ended:
        return Ended(EndReason.EXIT, self._code)

    def resize(self, to: Resources) -> Resized:
        self.limits = Resized("applied") if to == UNLIMITED else _NO_LIMITS
        return self.limits

    def usage(self) -> None:
        """Nobody can tell the threads of a process apart."""

    def end(self, grace_seconds: float) -> None:  # noqa: ARG002 - there is no force
        self._stop.set()


class InlinePlane:
    """A `Plane`."""

    kills = False

    def __init__(self, job: str) -> None:  # noqa: ARG002 - what every plane is given
        self._roles = {role.name: role for role in roles()}
        self._started: list[InlineExecution] = []

    def start(self, launch: Launch) -> InlineExecution:
        self._started.append(InlineExecution(launch, self._roles[launch.role]))
        return self._started[-1]

    def stop(self, grace_seconds: float) -> None:
        """Ask all threads to end, and wait until none that trains the line is left.

        It may be in the middle of a step or a seal, and would write into the folder of the window
        beside the next trainer. Any other one that is late goes on: what it stores is refused.
        """
        for each in self._started:
            each.end(grace_seconds)
        deadline = time.monotonic() + grace_seconds
        left = [each for each in self._started if not each.join(deadline - time.monotonic())]
        if left:
            names = ", ".join(each.name for each in left)
            _LOG.warning("%s: still running %.0f s after the end", names, grace_seconds)
        for each in left:
            if each.trains_line:
                each.join(None)


def start_here(job: Path, lock: FileLock) -> _Thread:
    """A supervisor in a thread. lock: of the job in this folder, whose holder leaves it to here."""
    held = lock.shared()
    try:
        return _Thread(f"supervisor of {job.name}", lambda: run_held(job, held))
    except BaseException:
        held.leave()
        raise
