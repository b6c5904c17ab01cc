"""Jobs that trained, train or were to train a window: read from their folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from forebay.executors.job.handle import JobRequest, JobStatus
    from forebay.home.paths import Home


@dataclass(frozen=True)
class Job:
    """One job: what was asked for and how it stands."""

    folder: Path
    request: JobRequest
    status: JobStatus

    def generation(self, window: str) -> int:
        """The generation in which the job has one of its windows."""
        return next(each.generation for each in self.request.windows if each.key == window)

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.status.state not in {"submitted", "running"}


def jobs_with(home: Home, pipeline: str, window: str) -> list[Job]:
    """Jobs of a pipeline that have this window, the newest submission first."""
    from forebay.executors.job.folder import JobFolder
    from forebay.executors.job.handle import JobRequest

    found = []
    for path in home.job("any").parent.glob("*/job.json"):
        folder = JobFolder(path.parent)
        status = folder.status()
        request = JobRequest.read(path.parent)
        asked = {each.key for each in request.windows}
        if status is not None and request.pipeline_name == pipeline and window in asked:
            found.append(Job(path.parent, request, status))
    return sorted(found, key=lambda job: job.status.submitted_at, reverse=True)
