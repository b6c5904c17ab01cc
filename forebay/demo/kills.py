"""Kills three processes of a running job, each once, while it trains."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from forebay.executors.job_folder import JobFolder
from forebay.executors.process import ProcessIdentity
from forebay.executors.progress import read_progress

# Who dies when this share of all rows is trained. The trainer is last: it counts from 0 again.
SCENES = ((0.15, "data-0"), (0.30, "driver-0"), (0.45, "trainer-0"))


@dataclass
class Kills:
    """Watches a job and strikes. `expected_rows`: what the whole job will train."""

    expected_rows: int
    say: Callable[[str], None]
    struck: list[str] = field(default_factory=list)
    _dead: ProcessIdentity | None = None

    def look(self, job_dir: Path) -> None:
        """Kill the next process when its moment has come and the one before is replaced."""
        if len(self.struck) == len(SCENES):
            return
        status, progress = JobFolder(job_dir).stored_status(), read_progress(job_dir)
        if status is None or progress is None or status.state != "running":
            return
        share, name = SCENES[len(self.struck)]
        if sum(progress.rows.values()) < share * self.expected_rows:
            return
        victim = status.processes.get(name)
        if victim is None or not self._replaced(status.processes):
            return
        if victim.signal(signal.SIGKILL):
            self.struck.append(name)
            self._dead = victim
            self.say(f"KILLED {name} (pid {victim.pid}) in window {progress.window}")

    def _replaced(self, processes: dict[str, ProcessIdentity]) -> bool:
        if self._dead is None:
            return True
        successor = processes.get(self.struck[-1])
        return successor is not None and successor != self._dead and successor.alive()
