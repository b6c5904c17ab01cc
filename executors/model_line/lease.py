"""The lease of a model line: only one job at a time trains it."""

from __future__ import annotations

from pathlib import Path

from forebay.errors import LineBusyError
from forebay.executors.job.request import JobRequest
from forebay.home.paths import Home
from forebay.system.files import make_folder
from forebay.system.locks import FileLock, is_held

LEASE_NAME = "lease.lock"
# Long enough for the holder's last microseconds, when its job has just been seen to end.
_LEASE_SECONDS = 0.5


def take_lease(request: JobRequest) -> FileLock:
    """Take the lease of the request's line for as long as the result is held.

    Raises:
        LineBusyError: when another job holds it; the message names that job.
    """
    line = Home(Path(request.home)).line(request.pipeline_name, request.line)
    make_folder(line)
    lease = FileLock(line / LEASE_NAME)
    if not lease.acquire(_LEASE_SECONDS):
        holder = lease.path.read_text() or "another job"
        raise LineBusyError(
            f"job {holder} trains line {request.line!r} of pipeline {request.pipeline_name!r}: "
            "wait for its end or cancel it"
        )
    lease.write(request.job_id)
    return lease


def line_holder(home: Home, pipeline: str, line: str) -> str:
    """The job that trains a line at this moment; an empty text when none does."""
    path = home.line(pipeline, line) / LEASE_NAME
    return (path.read_text() or "another job") if is_held(path) else ""
