"""All jobs of a home, found by their folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from forebay.executors.job.folder import JobFolder
from forebay.executors.job.job_id import window_job_id
from forebay.executors.job.request import REQUEST_NAME, JobRequest, JobStatus
from forebay.home.paths import Home


@dataclass(frozen=True)
class StoredJob:
    """A job that was submitted at some time. Request and status are read when first used."""

    folder: JobFolder

    @property
    def job_id(self) -> str:
        """The job's id, which names its folder."""
        return self.folder.path.name

    @cached_property
    def request(self) -> JobRequest:
        """What the job was submitted with last."""
        return JobRequest.read(self.folder.path)

    @cached_property
    def status(self) -> JobStatus | None:
        """The state of the job when this was first read; None while its submission goes on."""
        return self.folder.status()

    @property
    def is_active(self) -> bool:
        """Whether the job is starting or running."""
        return self.status is not None and self.status.is_active

    def generation(self, window: str) -> int | None:
        """The generation in which the job trains a window; None where it does not."""
        asked = (each.generation for each in self.request.windows if each.key == window)
        return next(asked, None)


def all_jobs(home: Home) -> Iterator[StoredJob]:
    """Every job that was ever submitted in this home, in the order of their ids."""
    for path in sorted(home.jobs.glob(f"*/{REQUEST_NAME}")):
        yield StoredJob(JobFolder(path.parent))


def jobs_of(home: Home, pipeline: str, line: str | None = None) -> Iterator[StoredJob]:
    """The jobs of one pipeline, of all its lines or of one."""
    for job in all_jobs(home):
        request = job.request
        if request.pipeline_name == pipeline and line in {None, request.line}:
            yield job


def window_jobs(home: Home, pipeline: str, line: str, window: str) -> Iterator[StoredJob]:
    """The jobs of one window, one for each generation; jobs of ranges are not among them."""
    for job in jobs_of(home, pipeline, line):
        generation = job.generation(window) or 0
        if generation and job.job_id == window_job_id(pipeline, line, window, generation):
            yield job


def jobs_with_window(
    home: Home, pipeline: str, window: str, line: str | None = None
) -> list[StoredJob]:
    """The jobs of a pipeline that train, trained or were to train a window, newest first."""
    found = [
        (job.status.submitted_at, job)
        for job in jobs_of(home, pipeline, line)
        if job.generation(window) is not None and job.status is not None
    ]
    return [job for _, job in sorted(found, key=lambda pair: pair[0], reverse=True)]
