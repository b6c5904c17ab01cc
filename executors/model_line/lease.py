"""The lease of a model line: only one job at a time trains it.

On one host a lock file tells at once whether the holder is alive. A holder on another host is seen
only in the database: it counts as gone once its heartbeat has not changed for `EXPIRED_SECONDS` of
the waiter's own clock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from forebay.errors import LineBusyError
from forebay.executors.job.request import JobRequest
from forebay.executors.job.stored_jobs import BEATS_SECONDS, EXPIRED_SECONDS, is_silent, stored_job
from forebay.executors.model_line.rows import lease_rows
from forebay.executors.model_line.rows.lease_rows import Holder
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.system.files.durable import make_folder
from forebay.system.files.locks import FileLock, is_held

LEASE_NAME = "lease.lock"
# Long enough for the holder's last microseconds, when its job has just been seen to end.
_LEASE_SECONDS = 0.5


@dataclass(frozen=True)
class Lease:
    """A line that this process holds. epoch: its transactions are checked against it."""

    epoch: int
    lock: FileLock

    def release(self) -> None:
        """Give the line back, as the end of this process does."""
        self.lock.release()


def take_lease(request: JobRequest, expired_seconds: float = EXPIRED_SECONDS) -> Lease:
    """Take the lease of the request's line for as long as the result is held.

    Waits while a job of another host shows no sign of life, until it counts as gone.

    Raises:
        LineBusyError: when another job holds it; the message names that job.
    """
    home = Home(Path(request.home))
    folder = home.line(request.pipeline_name, request.line)
    make_folder(folder)
    lock = FileLock(folder / LEASE_NAME)
    if not lock.acquire(_LEASE_SECONDS):
        raise _busy(request, lock.path.read_text())
    try:
        epoch = _take(request, home, expired_seconds)
    except BaseException:
        lock.release()
        raise
    lock.write(request.job_id)
    return Lease(epoch, lock)


def line_holder(home: Home, pipeline: str, line: str) -> str:
    """The job that trains a line at this moment; an empty text when none does."""
    path = home.line(pipeline, line) / LEASE_NAME
    if is_held(path):
        return path.read_text() or "another job"
    remote = _remote(home, pipeline, line)
    return "" if remote is None else remote.job_id


def held_lines(
    connection: Connection, home: Home, lines: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """The lines among these (pipeline, line) for which `line_holder` names a job, with its id.

    It is empty where the id is not stored yet.
    """
    here = runtime_of(home)
    known = lease_rows.holders(connection, {pipeline for pipeline, _ in lines})
    remote = {line for line, holder in known.items() if holder.runtime != here}
    held = (line for line in lines if line in remote or is_held(home.line(*line) / LEASE_NAME))
    return {line: known[line].job_id if line in known else "" for line in held}


def living_holder(
    home: Home, pipeline: str, line: str, watch_seconds: float = BEATS_SECONDS
) -> str:
    """As `line_holder`, but ignores a job of another host that shows no sign of life meanwhile.

    It may be alive all the same: taking the lease then watches it for longer.
    """
    found = line_holder(home, pipeline, line)
    seen = _remote(home, pipeline, line)
    if seen is None or seen.job_id != found:
        return found
    if is_silent(stored_job(home, seen.job_id), watch_seconds):
        return ""
    now = _remote(home, pipeline, line)
    return "" if now is None else now.job_id


def _take(request: JobRequest, home: Home, expired_seconds: float) -> int:
    pipeline, line = request.pipeline_name, request.line
    seen = _remote(home, pipeline, line)
    if seen is not None and not is_silent(stored_job(home, seen.job_id), expired_seconds):
        seen = _remote(home, pipeline, line)
        if seen is not None:  # it has not ended: it is alive
            raise _busy(request, seen.job_id)
    here = database_of(home)
    known = here.read(lambda rows: lease_rows.holder(rows, pipeline, line))
    if known is not None and known.runtime == runtime_of(home):
        seen = known  # the lock file is ours, so it is gone
    epoch = here.transact(lambda rows: lease_rows.take(rows, pipeline, line, request.job_id, seen))
    if epoch is None:
        raise _busy(request, known.job_id if known is not None else "")
    return epoch


def _remote(home: Home, pipeline: str, line: str) -> Holder | None:
    """Who holds a line on another host, as far as the database knows."""
    found = database_of(home).read(lambda rows: lease_rows.holder(rows, pipeline, line))
    return None if found is None or found.runtime == runtime_of(home) else found


def _busy(request: JobRequest, holder: str) -> LineBusyError:
    job = f"job {holder}" if holder else "another job"
    return LineBusyError(
        f"{job} trains line {request.line!r} of pipeline {request.pipeline_name!r}: "
        "wait for it to end, or cancel it"
    )
