"""The home folder on one host that runs jobs: only there are their processes and locks visible."""

from __future__ import annotations

import socket
from pathlib import Path

from forebay.home.database.open import database_of
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.processes.identity import ProcessIdentity, processes_with
from forebay.system.processes.parent import JOB_ID_NAME


def runtime_of(home: Home) -> str:
    """The name of this process's home folder among all that share a database."""
    if not database_of(home).shared:  # it is in the folder itself: only that folder uses it
        return "local"
    return f"{socket.gethostname()}:{home.root.resolve()}"


def processes_of_job(job_id: str, home: Path) -> list[ProcessIdentity]:
    """Living processes that carry this job's id and home in their environment.

    Without the calling process and its ancestors (a shell that exports both, say).
    """
    return processes_with({JOB_ID_NAME: job_id, ENVIRONMENT_NAME: str(home.absolute())})
