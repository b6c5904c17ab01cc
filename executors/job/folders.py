"""All jobs of a home, found by their folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from forebay.errors import UsageError
from forebay.executors.job.folder import STATUS_NAME, JobFolder
from forebay.executors.job.job_id import window_job_id
from forebay.executors.job.request import JobRequest, JobStatus
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
    def status(self) -> JobStatus:
        """The state of the job when this was first read.

        Raises:
            UsageError: when the job's folder was removed.
        """
        status = self.folder.status()
        if status is None:
            raise UsageError(f"no job {self.job_id!r} below {self.folder.path.parent}")
        return status

    def generation(self, window: str) -> int | None:
        """The generation in which the job trains a window; None where it does not."""
        found = (each.generation for each in self.request.windows if each.key == window)
        return next(found, None)


def all_jobs(home: Home) -> Iterator[StoredJob]:
    """Every job that was ever submitted in this home, in the order of their ids."""
    for path in sorted(home.jobs.glob(f"*/{STATUS_NAME}")):
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
    found = [job for job in jobs_of(home, pipeline, line) if job.generation(window) is not None]
    return sorted(found, key=lambda job: job.status.submitted_at, reverse=True)
