"""The local plane: child processes of the supervisor on its own machine."""

from __future__ import annotations

import os
import subprocess
import time

from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.planes.base import Launch
from forebay.system.processes.children import Children, wait_or_kill
from forebay.system.processes.identity import ProcessIdentity
from forebay.system.processes.parent import PARENT_PID_NAME, adopt_orphans


class LocalExecution:
    def __init__(self, launch: Launch, process: subprocess.Popen[bytes]) -> None:
        """The child is not reaped before `poll` is called, so its identity can be read."""
        identity = ProcessIdentity.of(process.pid)
        if identity is None:
            raise InfrastructureError("/proc is not readable: Forebay needs a mounted /proc")
        self.launch = launch
        self.identity = identity
        self.process = process

    def poll(self) -> int | None:
        return self.process.poll()


class LocalPlane:
    """Starts processes with subprocess; they end with this process, however it ends."""

    def __init__(self, *, adopts_orphans: bool = False) -> None:
        """With `adopts_orphans`, all other children of this process count as orphans.

        Only for a process that starts children only through this plane.
        """
        self._adopts_orphans = adopts_orphans
        self._children = Children()
        self._started: list[LocalExecution] = []
        if adopts_orphans:
            adopt_orphans()

    def start(self, launch: Launch) -> LocalExecution:
        environment = {**launch.environment, PARENT_PID_NAME: str(os.getpid())}
        with launch.log_path.open("ab") as log:
            try:
                process = self._children.start(launch.command, environment, log)
            except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
                raise ConfigError(
                    f"the interpreter of role {launch.role} cannot be run: {error}"
                ) from error
            except OSError as error:
                raise InfrastructureError(f"cannot start {launch.name}: {error}") from error
        execution = LocalExecution(launch, process)
        self._started = [*self._running(), execution]
        return execution

    def stop(self, grace_seconds: float) -> None:
        """As in the protocol; returns when every process is gone."""
        running = self._running()
        for execution in running:
            execution.process.terminate()
        deadline = time.monotonic() + grace_seconds
        for execution in running:
            wait_or_kill(execution.process, deadline, execution.launch.name)
        if self._adopts_orphans:
            self._children.end_orphans()

    def _running(self) -> list[LocalExecution]:
        """Executions whose end nobody has seen yet."""
        return [one for one in self._started if one.process.returncode is None]
