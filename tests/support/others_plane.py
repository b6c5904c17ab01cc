"""A plane of another package: everything by the standard library, and no limits."""

from __future__ import annotations

import os
import subprocess
import time

import psutil

from forebay.errors import ConfigError
from forebay.executors.planes.base import Ended, EndReason, Launch, Resized, Usage
from forebay.executors.roles.resources import UNLIMITED, Resources
from forebay.system.processes.identity import ProcessIdentity
from forebay.system.processes.parent import PARENT_PID_NAME


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
    kills = True

    def __init__(self, job: str) -> None:
        self.job = job
        self.started: list[OthersExecution] = []

    def start(self, launch: Launch) -> OthersExecution:
        launch.log_path.with_name("others-plane").touch()
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
