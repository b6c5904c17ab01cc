"""Components as running processes: started, restarted after an end, stopped."""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from forebay.embedded.airflow.components import Component
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.airflow.settings import COMPONENT_NAME
from forebay.embedded.layout import Layout
from forebay.embedded.state import ComponentStatus
from forebay.errors import InfrastructureError
from forebay.system.processes.children import wait_or_kill
from forebay.system.processes.identity import kill_all
from forebay.system.processes.supervision import RestartPolicy, SupervisedProcess

_LOG = logging.getLogger(__name__)

Starter = Callable[[Component], "subprocess.Popen[bytes]"]


class ComponentProcess:
    """One component, kept running until it is stopped or ends too often."""

    def __init__(
        self, component: Component, layout: Layout, starter: Starter, policy: RestartPolicy
    ) -> None:
        self.component = component
        self._layout = layout
        self._process = SupervisedProcess(lambda: starter(component), policy)
        self._status = ComponentStatus(name=component.name, state="waiting")

    @property
    def pid(self) -> int | None:
        running = self._process.running
        return running.pid if running is not None else None

    @property
    def status(self) -> ComponentStatus:
        return self._status.model_copy(update={"pid": self.pid})

    def _tell(self, **changes: Any) -> None:
        self._status = self._status.model_copy(update=changes)

    def start(self) -> None:
        self._process.start()
        self._tell(state="running", started_at=datetime.now(UTC))

    def tick(self) -> bool:
        """Notice an end, and restart when it is due; returns whether it was started just now."""
        code = self._process.take_end()
        if code is not None:
            self._tell(started_at=None)
            self.end_left_behind()
            self._plan_restart(code, f"ended ({code})")
        if not self._process.is_due(time.monotonic()):
            return False
        self._tell(restarts=self._status.restarts + 1)
        try:
            self.start()
        except OSError as error:  # no memory for a process, no room for its log
            self._plan_restart(None, f"cannot be started ({error})")
            return False
        return True

    def _plan_restart(self, code: int | None, what: str) -> None:
        name = self.component.name
        decision = self._process.plan(code, time.monotonic())
        if decision.action == "ignore":
            _LOG.info("%s %s: it is done", name, what)
            self._tell(state="stopped")
        elif decision.action == "restart":
            _LOG.warning("%s %s: restarting in %.1f s", name, what, decision.delay_seconds)
            self._tell(state="restarting")
        else:
            _LOG.error("%s %s too often: it is not restarted", name, what)
            self._tell(state="failed")

    def ask_to_stop(self) -> None:
        """Send the signal that ends it cleanly; it is not started again."""
        self._process.due = None
        if self._process.running is not None:
            self._process.running.send_signal(self.component.stop_signal)
        if self.component.waits_for_work:
            self.end_left_behind()

    def end_left_behind(self) -> None:
        """End processes below the component: LocalExecutor's workers outlive a dead scheduler."""
        left = left_processes(self._layout, **{COMPONENT_NAME: self.component.name})
        others = [process for process in left if process.pid != self.pid]
        if not others:
            return
        _LOG.info("ending %d processes below %s", len(others), self.component.name)
        try:
            kill_all(others)
        except InfrastructureError as error:
            # Stuck in the kernel: it can do no more harm, and the others need their keeper.
            _LOG.warning("%s", error)

    def wait_stopped(self, deadline: float) -> None:
        """Wait until the process is gone; kill it at the deadline."""
        if self._process.running is not None:
            wait_or_kill(self._process.running, deadline, self.component.name)
        self._process.forget()
        self.end_left_behind()
        self._tell(state="stopped", started_at=None)
