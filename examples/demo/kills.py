"""Kills three processes of running jobs, each once, while they train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from examples.demo.trained_rows import RunningJob, running_jobs
from forebay.home.paths import Home
from forebay.home.runtime import processes_of_job
from forebay.system.processes.identity import ProcessIdentity

# Which process is killed once this share of all rows is trained: two while the long history is
# read, one in the middle of the windows. The trainer is last, as a new one counts rows from 0.
SCENES = ((0.15, "data-0"), (0.45, "driver-0"), (0.93, "trainer-0"))


@dataclass
class Kills:
    """Watches a pipeline's jobs and kills processes. `expected_rows`: of all windows together."""

    home: Home
    pipeline: str
    expected_rows: int
    say: Callable[[str], None]
    struck: list[str] = field(default_factory=list)
    _rows: dict[Path, int] = field(default_factory=dict)
    _dead: tuple[Path, ProcessIdentity] | None = None

    def look(self) -> None:
        """Kill the next process once it is due and the previous one has been replaced."""
        if len(self.struck) == len(SCENES):
            return
        for job in running_jobs(self.home, self.pipeline):
            self._rows[job.folder] = sum(job.progress.rows.values())
            self._strike(job)

    def _strike(self, job: RunningJob) -> None:
        if len(self.struck) == len(SCENES):
            return
        share, name = SCENES[len(self.struck)]
        if sum(self._rows.values()) < share * self.expected_rows:
            return
        victim = _process(job, name)
        if victim is None or not self._replaced(job):
            return
        if victim.kill():
            self.struck.append(name)
            self._dead = (job.folder, victim)
            self.say(f"KILLED {name} (pid {victim.pid}) in window {job.progress.window}")

    def _replaced(self, job: RunningJob) -> bool:
        """Whether the last killed process has a successor; another job has nothing to replace."""
        if self._dead is None or self._dead[0] != job.folder:
            return True
        successor = _process(job, self.struck[-1])
        return successor is not None and successor != self._dead[1]


def _process(job: RunningJob, name: str) -> ProcessIdentity | None:
    """A process of the job by name; an unrelated process with the same pid does not count."""
    living = processes_of_job(job.folder.name, job.folder.parent.parent)
    return next((one for one in living if one.pid == job.status.pids.get(name)), None)
