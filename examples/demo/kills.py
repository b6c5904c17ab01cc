"""Kills three processes of running jobs, each once, while they train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from examples.demo.trained_rows import running_jobs
from forebay.executors.job.runners import RunnerPlace
from forebay.executors.job.stored_jobs import StoredJob
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
    _rows: dict[str, int] = field(default_factory=dict)
    _dead: tuple[str, ProcessIdentity] | None = None

    def look(self) -> None:
        """Kill the next process once it is due and the previous one has been replaced."""
        if len(self.struck) == len(SCENES):
            return
        for job, progress in running_jobs(self.home, self.pipeline):
            self._rows[job.job_id] = sum(progress.rows.values())
            self._strike(job, progress.window)

    def _strike(self, job: StoredJob, window: str) -> None:
        if len(self.struck) == len(SCENES):
            return
        share, name = SCENES[len(self.struck)]
        if sum(self._rows.values()) < share * self.expected_rows:
            return
        victim = self._process(job, name)
        if victim is None or not self._replaced(job):
            return
        if victim.kill():
            self.struck.append(name)
            self._dead = (job.job_id, victim)
            self.say(f"KILLED {name} (pid {victim.pid}) in window {window}")

    def _replaced(self, job: StoredJob) -> bool:
        """Whether the last killed process has a successor; another job has nothing to replace."""
        if self._dead is None or self._dead[0] != job.job_id:
            return True
        successor = self._process(job, self.struck[-1])
        return successor is not None and successor != self._dead[1]

    def _process(self, job: StoredJob, name: str) -> ProcessIdentity | None:
        """A process of the job by name; an unrelated process with the same pid does not count."""
        runner = RunnerPlace(self.home, job.row.pipeline, job.row.line).name
        names = (job.job_id, runner)  # whose processes stay for the next window
        living = [one for name in names for one in processes_of_job(name, self.home.root)]
        return next((one for one in living if one.pid == job.row.status.pids.get(name)), None)
