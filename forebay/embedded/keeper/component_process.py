"""Components as running processes: started, restarted after an end, stopped."""

from __future__ import annotations

import logging
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime

from forebay.embedded.airflow.components import Component
from forebay.embedded.airflow.jobs import left_processes
from forebay.embedded.airflow.settings import COMPONENT_NAME
from forebay.embedded.keeper.restarts import restart_delay
from forebay.embedded.layout import Layout
from forebay.embedded.state import ComponentState, ComponentStatus
from forebay.errors import InfrastructureError
from forebay.system.processes import kill_all

_POLL_SECONDS = 0.05
_LOG = logging.getLogger(__name__)

Starter = Callable[[Component], "subprocess.Popen[bytes]"]


class ComponentProcess:
    """One component, kept running until it is stopped or ends too often."""

    def __init__(self, component: Component, layout: Layout, starter: Starter) -> None:
        """Nothing is started yet."""
        self.component = component
        self._layout = layout
        self._starter = starter
        self._process: subprocess.Popen[bytes] | None = None
        self._ends: list[float] = []
        self._due: float | None = None
        self._state: ComponentState = "waiting"
        self._restarts = 0
        self._started_at: datetime | None = None

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._process.pid if self._process is not None else None

    @property
    def status(self) -> ComponentStatus:
        """As others see it."""
        return ComponentStatus(
            name=self.component.name,
            pid=self.pid,
            state=self._state,
            restarts=self._restarts,
            started_at=self._started_at,
        )

    def start(self) -> None:
        """Start the process."""
        self._process = self._starter(self.component)
        self._state = "running"
        self._due = None
        self._started_at = datetime.now(UTC)

    def tick(self) -> bool:
        """See an end, and start again when it is time.

        Returns:
            Whether it was started again just now.
        """
        if self._process is not None and self._process.poll() is not None:
            self._ended(self._process.returncode)
        if self._due is None or time.monotonic() < self._due:
            return False
        self._restarts += 1
        try:
            self.start()
        except OSError as error:  # no memory for a process, no room for its log
            self._plan_restart(f"cannot be started ({error})")
            return False
        return True

    def _ended(self, code: int) -> None:
        self._process = None
        self._started_at = None
        self.end_left_behind()
        self._plan_restart(f"ended ({code})")

    def _plan_restart(self, what: str) -> None:
        name = self.component.name
        now = time.monotonic()
        self._ends.append(now)
        delay = restart_delay(self._ends, now)
        if delay is None:
            _LOG.error("%s %s too often: it is not started again", name, what)
            self._state = "failed"
            self._due = None
            return
        _LOG.warning("%s %s: again in %.1f s", name, what, delay)
        self._state = "restarting"
        self._due = now + delay

    def ask_to_stop(self) -> None:
        """Send the signal that ends it in good order."""
        self._due = None
        if self._process is not None:
            self._process.send_signal(self.component.stop_signal)
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
            # Stuck in the kernel: it can do nothing any more, and the others need their keeper.
            _LOG.warning("%s", error)

    def wait_stopped(self, deadline: float) -> None:
        """Wait until the process is gone; kill it at the deadline."""
        if self._process is not None:
            while self._process.poll() is None and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            if self._process.poll() is None:
                _LOG.warning("%s does not end: killing it", self.component.name)
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
            self._started_at = None
        self.end_left_behind()
        self._state = "stopped"
