"""All components of one embedded Airflow, as children of the calling process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from forebay.embedded.airflow.components import (
    FOLLOW,
    NAMES,
    Component,
    launch_command,
    launch_environment,
)
from forebay.embedded.keeper.component_process import ComponentProcess
from forebay.embedded.layout import Layout
from forebay.embedded.state import ComponentStatus
from forebay.errors import InfrastructureError
from forebay.system.processes.children import Children
from forebay.system.processes.supervision import RestartPolicy

# Ends older than ten minutes are forgotten: one end a day is no reason to give up after a week.
COMPONENT_POLICY = RestartPolicy(
    restart="always",
    restarts_max=8,
    delay_first_seconds=0.5,
    delay_max_seconds=10.0,
    memory_seconds=600.0,
)


# It ends by itself where its dataset does. Whatever is away comes back, or somebody is told.
_FOLLOWER = replace(
    COMPONENT_POLICY, restart="on_failure", restarts_max=10**6, delay_max_seconds=60.0
)


class ComponentGroup:
    """Components by name. Each is restarted when it ends, until it is stopped."""

    def __init__(self, layout: Layout, policy: RestartPolicy = COMPONENT_POLICY) -> None:
        self._layout = layout
        self._policy = policy
        self._environment = dict(os.environ)
        self._components: dict[str, ComponentProcess] = {}
        self._children = Children()

    def start(self, component: Component) -> ComponentProcess:
        policy = self._policy
        if component.name.startswith(FOLLOW):
            policy = _FOLLOWER
        process = ComponentProcess(component, self._layout, self.launch, policy)
        self._components[component.name] = process
        process.start()
        return process

    def launch(self, component: Component) -> subprocess.Popen[bytes]:
        """Start a command, appending its output to its log; the caller sees its end."""
        with self._layout.log(component.name).open("ab") as log:
            return self._children.start(
                launch_command(component),
                launch_environment(component, self._layout, os.getpid(), self._environment),
                log,
                # Another account cannot enter a private home.
                folder=self._layout.root if component.account is None else Path("/"),
                descriptors=() if component.listening is None else (component.listening,),
            )

    def tick(self) -> list[str]:
        """Notice ends and restart what is due; returns the names of what was started."""
        again = [name for name, process in self._components.items() if process.tick()]
        self._children.reap_orphans()
        return again

    def statuses(self) -> list[ComponentStatus]:
        """The statuses of all components, including those that were not started yet."""
        return [
            self._components[name].status
            if name in self._components
            else ComponentStatus(name=name, state="waiting")
            for name in (*NAMES, *(each for each in self._components if each not in NAMES))
        ]

    def forget(self, name: str) -> None:
        """A component that was stopped is not shown any more."""
        del self._components[name]

    def given_up(self) -> list[str]:
        """Names of components that ended too often."""
        return [name for name, each in self._components.items() if each.status.state == "failed"]

    def stop(self, names: Iterable[str], seconds: float) -> None:
        """Stop some components together, in at most this many seconds."""
        processes = [self._components[name] for name in names if name in self._components]
        for process in processes:
            process.ask_to_stop()
        deadline = time.monotonic() + seconds
        for process in processes:
            process.wait_stopped(deadline)

    def failure(self, name: str, what: str) -> InfrastructureError:
        """The error to raise about a component: it names its log and quotes its last line."""
        log = self._layout.log(name)
        lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
        last = f"; its last line: {lines[-1]}" if lines else ""
        return InfrastructureError(f"{name} {what}: see {log}{last}")
