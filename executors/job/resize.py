"""Other limits for processes of a job that runs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from forebay.errors import InfrastructureError
from forebay.executors.job import job_changes
from forebay.executors.job.stored_jobs import StoredJob, stored_job
from forebay.home.database.open import database_of

ANSWER_SECONDS = 15.0
_POLL_SECONDS = 0.1


def resize(job: StoredJob, role: str, changes: Mapping[str, float | None]) -> dict[str, str]:
    """Change the limits of each process of a role, until the job ends.

    By process, why they do not hold; empty where they do. changes: fields of `Resources`.

    Raises:
        UsageError: when the job has ended, or has no such role.
        InfrastructureError: when its supervisor does not answer; what is wanted stays.
    """
    version = database_of(job.home).transact(
        lambda rows: job_changes.resize(rows, job.job_id, role, changes)
    )
    job.folder.poke()
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        status = stored_job(job.home, job.job_id).status
        if status.acted_on >= version:
            return {name: why for name, why in status.unmet.items() if name.startswith(f"{role}-")}
        time.sleep(_POLL_SECONDS)
    raise InfrastructureError(
        f"the supervisor of job {job.job_id} has not answered within {ANSWER_SECONDS:.0f} s; once "
        "it does, these limits hold"
    )
