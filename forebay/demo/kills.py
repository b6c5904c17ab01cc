"""Kills three processes of a running job, each once, while it trains."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from forebay.executors.job_folder import JobFolder
from forebay.executors.job_models import JobStatus
from forebay.executors.process import ProcessIdentity, processes_of_job
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
        victim = _process(job_dir, status, name)
        if victim is None or not self._replaced(job_dir, status):
            return
        if victim.signal(signal.SIGKILL):
            self.struck.append(name)
            self._dead = victim
            self.say(f"KILLED {name} (pid {victim.pid}) in window {progress.window}")

    def _replaced(self, job_dir: Path, status: JobStatus) -> bool:
        if self._dead is None:
            return True
        successor = _process(job_dir, status, self.struck[-1])
        return successor is not None and successor != self._dead


def _process(job_dir: Path, status: JobStatus, name: str) -> ProcessIdentity | None:
    """A process of the job by name; one that only has the same pid is none of it."""
    home = job_dir.parent.parent
    living = processes_of_job(job_dir.name, home)
    return next((one for one in living if one.pid == status.pids.get(name)), None)
