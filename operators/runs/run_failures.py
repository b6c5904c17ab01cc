"""When a run of each DAG last failed: tasks waiting for its other windows then look again."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, insert, select

from forebay.home.database.open import database_of
from forebay.home.database.tables import batches, failed_runs
from forebay.home.paths import Home


def note_failure(home: Home, dag_id: str, failed_at: int) -> None:
    """Store when a run of a DAG failed, in microseconds since 1970, replacing the previous time.

    Raises:
        InfrastructureError: when it cannot be stored.
    """

    def work(rows: Connection) -> None:
        rows.execute(delete(failed_runs).where(failed_runs.c.dag_id == dag_id))
        rows.execute(insert(failed_runs).values(dag_id=dag_id, failed_at=failed_at))

    database_of(home).transact(work)


def last_failures(connection: Connection, dag_ids: Collection[str]) -> dict[str, int]:
    """When a run of each DAG last failed, in microseconds since 1970; no entry if none did."""
    found = (
        (row.dag_id, row.failed_at)
        for some in batches(dag_ids)
        for row in connection.execute(select(failed_runs).where(failed_runs.c.dag_id.in_(some)))
    )
    return dict(found)
