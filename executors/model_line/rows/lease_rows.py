"""The lease of a model line as a row: who trains it, and the epoch that fences everybody else.

Each time the lease is taken, the epoch grows. A trainer that changes the line compares its own
epoch in the same transaction: if a newer one is stored, another job trains the line by now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from forebay.errors import FencedError
from forebay.executors.job.request import ACTIVE_STATES
from forebay.executors.model_line.rows.line_rows import locked_line
from forebay.home.database.tables import batches, jobs, lines

# Built once: whoever waits for a turn asks this every second.
_HELD = (
    select(lines.c.pipeline, lines.c.line, jobs.c.job_id, jobs.c.runtime, jobs.c.beats)
    .join(jobs, jobs.c.job_id == lines.c.lease_job)
    .where(lines.c.pipeline.in_(bindparam("pipelines", expanding=True)))
    .where(jobs.c.state.in_(ACTIVE_STATES))
)


class Holder(NamedTuple):
    """The job that last took the lease and has not ended.

    runtime: where it runs. beats: grows while its supervisor is alive and reaches the database.
    """

    job_id: str
    runtime: str
    beats: int


def holder(connection: Connection, pipeline: str, line: str) -> Holder | None:
    """Who holds the lease; None when nobody took it, or that job has ended."""
    return holders(connection, [pipeline]).get((pipeline, line))


def holders(connection: Connection, pipelines: Iterable[str]) -> dict[tuple[str, str], Holder]:
    found = (
        row for some in batches(pipelines) for row in connection.execute(_HELD, {"pipelines": some})
    )
    return {(row.pipeline, row.line): Holder(row.job_id, row.runtime, row.beats) for row in found}


def take(
    connection: Connection, pipeline: str, line: str, job_id: str, seen: Holder | None
) -> int | None:
    """Take the lease; the epoch, or None if another job came first.

    seen: the holder that the caller knows to be gone.
    """
    of_line = locked_line(connection, pipeline, line)
    found = holder(connection, pipeline, line)
    if found is not None and found.job_id != job_id and found != seen:
        return None
    epoch = (connection.scalar(select(lines.c.lease_epoch).where(lines.c.id == of_line)) or 0) + 1
    values = {"lease_epoch": epoch, "lease_job": job_id}
    connection.execute(update(lines).where(lines.c.id == of_line).values(values))
    return epoch


def require(connection: Connection, line: int, epoch: int) -> None:
    """Require that this epoch is the newest.

    Raises:
        FencedError: when another job has taken the line.
    """
    row = connection.execute(
        select(lines.c.lease_epoch, lines.c.lease_job).where(lines.c.id == line)
    ).one()
    if row.lease_epoch != epoch:
        raise FencedError(
            f"job {row.lease_job} trains this line now (lease {row.lease_epoch}): what lease "
            f"{epoch} has trained since is not stored"
        )
