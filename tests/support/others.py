"""A plane and a role of another package, by the standard library: no limits, and no work."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil

from forebay.config.role_environment import Access
from forebay.errors import ConfigError
from forebay.executors.planes.base import Ended, EndReason, Launch, Resized, Usage
from forebay.executors.role import role_arguments, role_exit, start_role
from forebay.executors.roles.resources import UNLIMITED, Resources
from forebay.executors.roles.table import Role
from forebay.system.liveness import waiting
from forebay.system.processes.identity import ProcessIdentity
from forebay.system.processes.parent import PARENT_PID_NAME

# It serves until it is stopped.
CACHE = Role(name="cache", module="support.others", access=Access())


class OthersExecution:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        self.process, self.identity = process, identity
        self.limits = Resized("applied")
        self.kill_at = float("inf")

    def poll(self) -> int | None:
        if time.monotonic() >= self.kill_at:
            self.process.kill()
        return self.process.poll()

    def ended(self) -> Ended:
        code = self.process.returncode
        return Ended(EndReason.SIGNAL if code < 0 else EndReason.EXIT, code)

    def resize(self, to: Resources) -> Resized:
        limited = to != UNLIMITED
        self.limits = Resized("unsupported", "this plane has no limits") if limited else self.limits
        return self.limits

    def usage(self) -> Usage | None:
        if not self.identity.alive():
            return None
        return Usage(memory_bytes=psutil.Process(self.identity.pid).memory_info().rss)

    def end(self, grace_seconds: float) -> None:
        self.process.terminate()
        self.kill_at = time.monotonic() + grace_seconds


class OthersPlane:
    def __init__(self, job_dir: Path) -> None:
        self.made = job_dir / "others-plane"
        self.started: list[OthersExecution] = []

    def start(self, launch: Launch) -> OthersExecution:
        self.made.touch()
        environment = {**launch.environment, PARENT_PID_NAME: str(os.getpid())}
        with launch.log_path.open("ab") as log:
            try:
                process = subprocess.Popen(launch.command, env=environment, stdout=log, stderr=log)
            except OSError as error:
                text = f"the interpreter of role {launch.role} cannot be run: {error}"
                raise ConfigError(text) from error
        self.started.append(OthersExecution(process))
        self.started[-1].resize(launch.resources)
        return self.started[-1]

    def stop(self, grace_seconds: float) -> None:
        for each in self.started:
            each.end(grace_seconds)
        while any(each.poll() is None for each in self.started):
            time.sleep(0.01)


if __name__ == "__main__":
    given = role_arguments(CACHE.name, None, "index", "attempt")
    start_role(CACHE.name, given.index, given.job)
    with role_exit(CACHE.name, given.index, given.job), waiting():
        print("serving", flush=True)
        time.sleep(300)
