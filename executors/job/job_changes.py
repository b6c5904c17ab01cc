"""Changes of a job's row by its owners and its supervisor, each in the caller's transaction.

Light: imports neither Arrow nor NumPy. The owner is the caller with the newest epoch; older ones
may read, but no longer end anything. A supervisor is fenced by the epoch of its submission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, update

from forebay.datatasks.plans import plan_rows
from forebay.errors import FencedError, InfrastructureError, UsageError
from forebay.executors.job.job_rows import JobRow, find, is_job, windows_of
from forebay.executors.job.request import ENDED_STATES, JobRequest, JobStatus, WindowRequest
from forebay.executors.roles.resources import Desired, Resources
from forebay.executors.roles.table import SUPERVISOR
from forebay.home.database.tables import job_windows, jobs
from forebay.system.instants import now_us, to_us


class CancelAnswer(NamedTuple):
    epoch: int
    accepted: bool


def refuse_other_line(row: JobRow, request: JobRequest) -> None:
    """Refuse to replace a job of another line: ids differ, unless a caller made one up.

    Raises:
        UsageError: when the job belongs to another line.
    """
    if (row.pipeline, row.line) != (request.pipeline_name, request.line):
        raise UsageError(
            f"job {request.job_id} trains line {row.line!r} of pipeline "
            f"{row.pipeline!r}: line {request.line!r} of pipeline "
            f"{request.pipeline_name!r} needs a different job id"
        )


def submit(
    connection: Connection,
    request: JobRequest,
    runtime: str,
    run: str | None,
    silent: JobRow | None = None,
) -> int | None:
    """Store a submission; no process of the job runs in `runtime`, where it is going to run.

    The epoch of the new owner; None where another runtime runs the job.

    run: owns the job from now on; None for no owner that would end it. silent: the job's row,
    unchanged while another runtime was watched for a sign of life.

    Raises:
        UsageError: when the job belongs to another line.
    """
    before = find(connection, request.job_id)
    epoch = 1
    if before is not None:
        refuse_other_line(before, request)
        if before.is_active and before.runtime != runtime and not _stands_still(before, silent):
            return None
        epoch = before.epoch + 1
    generations = {each.key: each.generation for each in request.windows}
    plan_rows.let_count(connection, request.pipeline_name, generations)
    status = _submitted(request.job_id, epoch, before)
    values = {
        "job_id": request.job_id,
        "pipeline": request.pipeline_name,
        "line": request.line,
        "publishes": request.publishes,
        "fingerprint": request.fingerprint,
        "runtime": runtime,
        "epoch": epoch,
        "run_epoch": epoch,
        "owner_run": run,
        "cancel_epoch": None,
        "desired": _desired(request, before).model_dump_json(),
        **_reported(status),
    }
    if before is None:
        made = connection.execute(insert(jobs).values(beats=0, **values))
        _store_windows(connection, made.inserted_primary_key, request.windows)
        return epoch
    progress = {} if before.is_active else {"progress": None, "beat_at": None}
    of_job = jobs.c.id == before.id
    connection.execute(update(jobs).where(of_job).values(**values, **progress))
    connection.execute(delete(job_windows).where(job_windows.c.job_row == before.id))
    _store_windows(connection, [before.id], request.windows)
    return epoch


def _desired(request: JobRequest, before: JobRow | None) -> Desired:
    """As declared; what was wanted of a lost job still is, unless its declaration has changed."""
    if before is not None and before.is_active and before.fingerprint == request.fingerprint:
        return before.wanted
    version = 1 if before is None else before.wanted.version + 1
    return Desired.declared(request.pipeline_spec().job, version)


def _stands_still(row: JobRow, seen: JobRow | None) -> bool:
    return seen is not None and (row.run_epoch, row.beats) == (seen.run_epoch, seen.beats)


def join(connection: Connection, request: JobRequest, run: str | None) -> int | None:
    """Become the newest owner of a job that is running with this request; None if it is not active.

    Raises:
        InfrastructureError: when it is running with a different request.
        UsageError: when the job belongs to another line.
    """
    row = find(connection, request.job_id)
    if row is None:
        return None
    refuse_other_line(row, request)
    if not row.is_active:
        return None
    running = windows_of(connection, is_job(request.job_id)).get(row.id, [])
    # Windows that the job has trained meanwhile are not requested again.
    covered = all((each.key, each.generation) in running for each in request.windows)
    if not covered or row.fingerprint != request.fingerprint:
        raise InfrastructureError(
            f"job {request.job_id} is already running with another request: wait for it to end, or "
            "cancel it"
        )
    return attach(connection, request.job_id, run)


def attach(connection: Connection, job_id: str, run: str | None) -> int:
    """Become the newest owner of a job, in whatever state it is.

    Raises:
        UsageError: when it was never submitted.
    """
    row = _known(connection, job_id)
    values = {"epoch": row.epoch + 1, "owner_run": run}
    connection.execute(update(jobs).where(jobs.c.id == row.id).values(values))
    return row.epoch + 1


def request_cancel(connection: Connection, job_id: str, epoch: int) -> None:
    """Request that a job ends; one that has ended stays as it is.

    Raises:
        FencedError: when it has a newer owner.
        UsageError: when it was never submitted.
    """
    row = _owned(connection, job_id, epoch)
    if row.is_active:
        connection.execute(update(jobs).where(jobs.c.id == row.id).values(cancel_epoch=epoch))


def resize(
    connection: Connection, job_id: str, role: str, changes: Mapping[str, float | None]
) -> int:
    """Want other limits for each process of a role; the version in which they are wanted.

    changes: values of `Resources` by field; the others stay.

    Raises:
        UsageError: when the job was never submitted, has ended, or has no such role.
        ValidationError: for other fields and values than `Resources` has.
    """
    row = _known(connection, job_id)
    if not row.is_active:
        raise UsageError(f"job {job_id} has ended ({row.state}): nothing of it can be resized")
    before = row.wanted.resources
    if role not in before:
        raise UsageError(f"job {job_id} has no role {role!r}: it has {', '.join(before)}")
    # Checked here: what the row may not hold would end the job at its supervisor's next look.
    to = Resources.model_validate({**before[role].model_dump(), **changes})
    found = row.wanted.resized(role, to)
    values = {"desired": found.model_dump_json()}
    connection.execute(update(jobs).where(jobs.c.id == row.id).values(values))
    return found.version


def refuse_older(row: JobRow, epoch: int) -> None:
    """Refuse every owner but the newest.

    Raises:
        FencedError: when there is a newer one.
    """
    if row.epoch > epoch:
        raise FencedError(
            f"job {row.job_id} has a newer owner (epoch {row.epoch}): "
            f"epoch {epoch} cannot cancel it"
        )


def end_cancelled(connection: Connection, job_id: str, epoch: int) -> None:
    """Cancel a job whose processes are gone; one that has ended stays as it is.

    Raises:
        FencedError: when it has a newer owner.
        UsageError: when it was never submitted.
    """
    row = _owned(connection, job_id, epoch)
    _end(connection, row, state="cancelled", cancelled_by=epoch)


def end_trained(connection: Connection, job_id: str, run_epoch: int) -> None:
    """End a job whose supervisor is gone and whose windows are all trained.

    One that has ended, or was submitted again, stays as it is.

    Raises:
        UsageError: when it was never submitted.
    """
    row = _known(connection, job_id)
    if row.run_epoch == run_epoch:
        _end(connection, row, state="succeeded")


def answer_cancel(connection: Connection, job_id: str, run_epoch: int) -> CancelAnswer | None:
    """Accept an open request that comes from the newest owner, and refuse an older one's.

    Once this is stored, a later attachment cannot undo it. None if no request is open.

    Raises:
        FencedError: when the job was submitted again.
    """
    row = _known(connection, job_id)
    if row.cancel_epoch is None:
        return None
    answer = CancelAnswer(row.cancel_epoch, accepted=row.cancel_epoch >= row.epoch)
    values: dict[str, Any] = {"cancel_epoch": None}
    if answer.accepted:
        told = row.status.model_copy(update={"cancelled_by": answer.epoch})
        values["document"] = told.model_dump_json()
    _change(connection, job_id, run_epoch, values)
    return answer


def report(connection: Connection, status: JobStatus, progress: str | None) -> None:
    """Store what a supervisor reports about its job; an end answers every request to cancel.

    Where a person has to act first, what the job did not train of trained windows counts no more:
    what they were trained from does.

    Raises:
        FencedError: when the job was submitted again, or is gone.
    """
    values = {**_reported(status), **_beat(progress)}
    if status.ended:
        values["cancel_epoch"] = None
    _change(connection, status.job_id, status.epoch, values)
    if status.error is not None and status.error.exit_code != InfrastructureError.exit_code:
        _withdraw(connection, _known(connection, status.job_id))


def _withdraw(connection: Connection, row: JobRow) -> None:
    windows = windows_of(connection, is_job(row.job_id)).get(row.id, [])
    generations = {each.key: each.generation for each in windows}
    plan_rows.withdraw(connection, row.pipeline, row.line, generations)


def beat(connection: Connection, job_id: str, run_epoch: int, progress: str | None) -> None:
    """Store that a supervisor is alive, and the progress of its job.

    Raises:
        FencedError: when the job was submitted again, or is gone.
    """
    _change(connection, job_id, run_epoch, _beat(progress))


def _end(connection: Connection, row: JobRow, **changes: Any) -> None:
    """Store the end of a job that no supervisor runs, unless it has ended."""
    if row.is_active:
        changes |= {"pids": {}, "ended_at": datetime.now(UTC)}
        values = {"cancel_epoch": None, **_reported(row.status.model_copy(update=changes))}
        connection.execute(update(jobs).where(jobs.c.id == row.id).values(values))


def _change(connection: Connection, job_id: str, run_epoch: int, values: dict[str, Any]) -> None:
    mine = is_job(job_id) & (jobs.c.run_epoch == run_epoch)
    if not connection.execute(update(jobs).where(mine).values(values)).rowcount:
        raise FencedError(
            f"job {job_id} was submitted again after epoch {run_epoch}, or its home was replaced: "
            "this supervisor no longer runs it"
        )


def _beat(progress: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"beats": jobs.c.beats + 1, "beat_at": now_us()}
    return found if progress is None else found | {"progress": progress}


def _reported(status: JobStatus) -> dict[str, Any]:
    return {
        "state": status.state,
        "document": status.model_dump_json(),
        "submitted_at": to_us(status.submitted_at),
        "started_at": None if status.started_at is None else to_us(status.started_at),
        "ended_at": None if status.ended_at is None else to_us(status.ended_at),
    }


def _submitted(job_id: str, epoch: int, before: JobRow | None) -> JobStatus:
    """The first status of a submission; after a lost supervisor its counts continue."""
    status = JobStatus(
        job_id=job_id, state="submitted", epoch=epoch, submitted_at=datetime.now(UTC)
    )
    if before is None or before.state in ENDED_STATES:
        return status
    lost = before.status
    restarts = dict(lost.restarts)
    # A job that was submitted but never ran has lost no supervisor.
    restarts[SUPERVISOR] += lost.started_at is not None
    return status.model_copy(
        update={"restarts": restarts, "ends": lost.ends, "hung": lost.hung, "peaks": lost.peaks}
    )


def _store_windows(
    connection: Connection, key: Sequence[int] | None, windows: Sequence[WindowRequest]
) -> None:
    if key is None:
        raise RuntimeError("a row was stored without a number")
    if windows:
        rows = [
            {
                "job_row": key[0],
                "position": position,
                "window": each.key,
                "generation": each.generation,
            }
            for position, each in enumerate(windows)
        ]
        connection.execute(insert(job_windows), rows)


def _owned(connection: Connection, job_id: str, epoch: int) -> JobRow:
    row = _known(connection, job_id)
    refuse_older(row, epoch)
    return row


def _known(connection: Connection, job_id: str) -> JobRow:
    row = find(connection, job_id)
    if row is None:
        raise UsageError(f"no job {job_id!r} was ever submitted in this home")
    return row
