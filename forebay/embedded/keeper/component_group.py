"""All components of one embedded Airflow, as children of the calling process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable

from forebay.embedded.airflow.components import NAMES, Component, start
from forebay.embedded.keeper.component_process import ComponentProcess
from forebay.embedded.layout import Layout
from forebay.embedded.state import ComponentStatus
from forebay.errors import InfrastructureError


class ComponentGroup:
    """Components by name. Each is started again when it ends, until it is stopped."""

    def __init__(self, layout: Layout) -> None:
        """Nothing is started yet. Components inherit this process's environment."""
        self._layout = layout
        self._environment = dict(os.environ)
        self._members: dict[str, ComponentProcess] = {}
        self._own: list[subprocess.Popen[bytes]] = []

    def start(self, component: Component) -> ComponentProcess:
        """Start a component and keep it running."""
        member = ComponentProcess(component, self._layout, self.launch)
        self._members[component.name] = member
        member.start()
        return member

    def launch(self, component: Component) -> subprocess.Popen[bytes]:
        """Start a command; whoever asked for it sees its end."""
        process = start(component, self._layout, os.getpid(), self._environment)
        self._own = [one for one in self._own if one.returncode is None] + [process]
        return process

    def tick(self) -> list[str]:
        """See ends and start again what is due; the result names what was started."""
        again = [name for name, member in self._members.items() if member.tick()]
        self._reap_strangers()
        return again

    def statuses(self) -> list[ComponentStatus]:
        """Of all components, those included that were not started yet."""
        return [
            self._members[name].status
            if name in self._members
            else ComponentStatus(name=name, state="waiting")
            for name in NAMES
        ]

    def given_up(self) -> list[str]:
        """Names of components that ended too often."""
        return [name for name, each in self._members.items() if each.status.state == "failed"]

    def stop(self, names: Iterable[str], seconds: float) -> None:
        """Stop some components at once, in this many seconds at most."""
        members = [self._members[name] for name in names if name in self._members]
        for member in members:
            member.ask_to_stop()
        deadline = time.monotonic() + seconds
        for member in members:
            member.wait_stopped(deadline)

    def failure(self, name: str, what: str) -> InfrastructureError:
        """What to raise about a component: it names its log and how that ends."""
        log = self._layout.log(name)
        lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
        last = f"; its last line: {lines[-1]}" if lines else ""
        return InfrastructureError(f"{name} {what}: see {log}{last}")

    def _reap_strangers(self) -> None:
        """Reap orphans that came to this process, and leave its own children to who waits for them.

        An own child that ended hides the strangers behind it until it was polled, which happens
        in every tick.
        """
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            unpolled = {one.pid for one in self._own if one.returncode is None}
            if ended is None or ended.si_pid in unpolled:
                return
            os.waitpid(ended.si_pid, 0)
