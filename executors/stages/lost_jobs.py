"""Ends jobs whose supervisor was killed after their last window was trained."""

from __future__ import annotations

from forebay.executors.job import job_changes
from forebay.executors.job.host import LIVE_SECONDS
from forebay.executors.job.stored_jobs import StoredJob, jobs_of
from forebay.executors.stages.target import LineTarget
from forebay.home.database.open import database_of


def end_trained_jobs(target: LineTarget) -> None:
    """End the line's lost jobs that have nothing left to train: nothing would submit them again.

    Raises:
        InfrastructureError: when the database cannot be reached.
    """
    for job in jobs_of(target.home, target.pipeline.name, target.line, unended=True):
        is_lost = job.is_here and job.status.state == "lost"
        if is_lost and all(target.is_trained(each.key, each.generation) for each in job.windows):
            _end(job)


def _end(job: StoredJob) -> None:
    with job.host.hold(job.job_id, LIVE_SECONDS) as held:
        if held is None:
            return  # it was submitted again
        database_of(job.home).transact(
            lambda rows: job_changes.end_trained(rows, job.job_id, job.row.run_epoch)
        )
