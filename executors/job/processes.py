"""The processes of a job, found by what they carry in their environment."""

from __future__ import annotations

from pathlib import Path

from forebay.home.paths import ENVIRONMENT_NAME
from forebay.system.parent import JOB_ID_NAME
from forebay.system.processes import ProcessIdentity, processes_with


def processes_of_job(job_id: str, home: Path) -> list[ProcessIdentity]:
    """Living processes that carry this job's id and home in their environment.

    Without the calling process and those above it (a shell that exports both, say).
    """
    return processes_with({JOB_ID_NAME: job_id, ENVIRONMENT_NAME: str(home.absolute())})
