"""When a run of a DAG has failed: whoever waits for another window of it looks again then."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.tables import failed_runs


def note_failure(home: Home, dag_id: str, failed_at: int) -> None:
    """Keep when a run of a DAG failed, in microseconds since 1970, in place of the time before.

    Raises:
        InfrastructureError: when it cannot be stored.
    """

    def work(rows: Connection) -> None:
        rows.execute(delete(failed_runs).where(failed_runs.c.dag_id == dag_id))
        rows.execute(insert(failed_runs).values(dag_id=dag_id, failed_at=failed_at))

    database_of(home).transact(work)


def last_failure(home: Home, dag_id: str) -> int:
    """When a run of a DAG failed last, in microseconds since 1970; 0 when none did.

    Raises:
        InfrastructureError: when the database cannot be reached.
    """
    found = select(failed_runs.c.failed_at).where(failed_runs.c.dag_id == dag_id)
    return database_of(home).read(lambda rows: rows.scalar(found)) or 0
