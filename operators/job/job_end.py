"""How a job is ended, and how its failure is reported: as its own error."""

from __future__ import annotations

import time
from collections.abc import Callable

from forebay.errors import FencedError, InfrastructureError, UsageError
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.request import JobStatus
from forebay.home.job_id import line_of
from forebay.home.paths import DEFAULT_LINE

CANCEL_SECONDS = 25.0
_PAUSE_SECONDS = 1.0


def cancel_job(handle: JobHandle, say: Callable[[str], object]) -> None:
    """End a job, unless it has a newer owner, and log which. Failures are retried.

    Raises:
        InfrastructureError: when the job is not known to have ended after `CANCEL_SECONDS`.
        UsageError: when no such job was ever submitted.
    """
    deadline = time.monotonic() + CANCEL_SECONDS
    while True:
        try:
            handle.cancel(max(0.0, deadline - time.monotonic()))
        except FencedError as error:
            say(str(error))
        except InfrastructureError as error:
            if time.monotonic() < deadline:
                time.sleep(_PAUSE_SECONDS)
                continue
            raise InfrastructureError(not_cancelled(handle.job_id, str(error))) from error
        else:
            say(f"job {handle.job_id} is cancelled")
        return


def not_cancelled(job_id: str, reason: str) -> str:
    pipeline, line = line_of(job_id)
    of_line = "" if line == DEFAULT_LINE else f" --line {line}"
    return (
        f"job {job_id} may still be running, since it could not be cancelled ({reason}): "
        f"`forebay cancel {pipeline}{of_line}` ends it"
    )


def raise_for_end(status: JobStatus, logs: str) -> None:
    """Raise the error of a job that has failed or was lost; do nothing for any other.

    The path of its logs comes first: the last line of a red task's log says the cause.

    Raises:
        ForebayError: the job's own error, by its remedy.
    """
    job = f"logs: {logs}\njob {status.job_id}"
    if status.state == "failed":
        if status.error is None:
            raise InfrastructureError(f"{job} failed")
        error = status.error.exception()
        # A missing package or a bug counts as infrastructure, but another attempt does not fix it.
        kind = UsageError if status.error.final else type(error)
        raise kind(f"{job} failed: {error}")
    if status.state == "cancelled":
        raise UsageError(f"{job} was cancelled: clear this task to train the window")
    if status.state == "lost":
        raise InfrastructureError(f"{job} lost its supervisor")
