"""The local plane: child processes of the supervisor on its own machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.planes.base import Capability, Ended, Launch
from forebay.system.parent import PARENT_PID_NAME, adopt_orphans
from forebay.system.processes import ProcessIdentity, descendants, kill_all, reap_orphan

_POLL_SECONDS = 0.02


class LocalExecution:
    """A child process."""

    def __init__(self, launch: Launch, process: subprocess.Popen[bytes]) -> None:
        """The child is not reaped before `poll` was called, so its identity is there."""
        identity = ProcessIdentity.of(process.pid)
        if identity is None:
            raise InfrastructureError("/proc is not readable: Forebay needs a mounted /proc")
        self.launch = launch
        self.identity = identity
        self.process = process

    def poll(self) -> int | None:
        """As in the protocol."""
        return self.process.poll()


class LocalPlane:
    """Starts processes with subprocess; they end with this process, however it ends."""

    def __init__(self, *, adopts_orphans: bool = False) -> None:
        """With `adopts_orphans`, all other children of this process count as left behind.

        Only for a process that starts children through this plane alone.
        """
        self._adopts_orphans = adopts_orphans
        self._running: list[LocalExecution] = []
        if adopts_orphans:
            adopt_orphans()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """As in the protocol."""
        orphans = {Capability.ADOPTS_ORPHANS} if self._adopts_orphans else set()
        return frozenset({Capability.SAME_FILE_SYSTEM, *orphans})

    def start(self, launch: Launch) -> LocalExecution:
        """As in the protocol."""
        environment = {**launch.environment, PARENT_PID_NAME: str(os.getpid())}
        with launch.log_path.open("ab") as log:
            try:
                process = subprocess.Popen(
                    list(launch.command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                )
            except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
                raise ConfigError(
                    f"the interpreter of role {launch.role} cannot be run: {error}"
                ) from error
            except OSError as error:
                raise InfrastructureError(
                    f"cannot start {launch.role}-{launch.index}: {error}"
                ) from error
        execution = LocalExecution(launch, process)
        self._running.append(execution)
        return execution

    def events(self) -> list[Ended]:
        """As in the protocol."""
        ended = []
        for execution in list(self._running):
            code = execution.poll()
            if code is not None:
                self._running.remove(execution)
                ended.append(Ended(execution, code))
        return ended

    def stop(self, grace_seconds: float) -> None:
        """As in the protocol; returns when every process is gone."""
        for execution in self._running:
            execution.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while self._running and time.monotonic() < deadline:
            self.events()
            time.sleep(_POLL_SECONDS)
        for execution in self._running:
            execution.process.kill()
            execution.process.wait()
        self._running.clear()
        if self._adopts_orphans:
            _end_orphans()


def _end_orphans() -> None:
    """Kill what roles left behind, until nothing is below this process."""
    while left := descendants():
        kill_all(left)
    while reap_orphan():
        pass
