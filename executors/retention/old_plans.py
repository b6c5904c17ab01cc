"""Replaced plans of older windows, from which no model was trained and no job will train one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, select, tuple_

from forebay.datatasks.window_order import IN_ORDER
from forebay.executors.job.job_rows import is_unended
from forebay.executors.retention.oldest import IN_RANGE, older_than, passed, windows_like
from forebay.home.garbage import unnamed
from forebay.home.rows import batches
from forebay.home.tables import job_windows, jobs, links, manifests, plans, requests, windows


class OldPlan(NamedTuple):
    """A plan that may be removed. window: its key."""

    plan: int
    window_id: int
    window: str
    generation: int


def old_plans(
    connection: Connection, pipeline: str, count: int, most: int | None = None
) -> list[OldPlan]:
    """Plans that may be removed, the oldest first.

    Args:
        connection: of the transaction.
        pipeline: whose plans they are.
        count: how many of the newest windows keep all their plans.
        most: how many of the other windows are looked at, the newest first; None for all.
    """
    asked: dict[str, object] = {"pipeline": pipeline}
    if not passed(connection, pipeline, [count]):
        return []
    older = older_than(connection, _PLANNED, asked, count, most)
    if older is None:
        return []
    return [OldPlan(*row) for row in connection.execute(_REPLACED, asked | older.asked())]


def forget_plans(connection: Connection, old: Sequence[OldPlan]) -> list[str]:
    """Remove plans, and the decisions for requests that chose them.

    Returns:
        Names in the store that nothing refers to any more: generations may share them.
    """
    if not old:
        return []
    ids = [each.plan for each in old]
    names = connection.scalars(select(manifests.c.name).where(manifests.c.plan_id.in_(ids)))
    left = sorted(set(names))
    connection.execute(delete(manifests).where(manifests.c.plan_id.in_(ids)))
    for some in batches((each.window_id, each.generation) for each in old):
        decided = tuple_(requests.c.window_id, requests.c.generation).in_(some)
        connection.execute(delete(requests).where(decided))
    connection.execute(delete(plans).where(plans.c.id.in_(ids)))
    return unnamed(connection, left)


def _replaced() -> Select[Any]:
    newer = plans.alias("newer")
    replaced = select(newer.c.id).where(
        newer.c.window_id == plans.c.window_id,
        newer.c.generation > plans.c.generation,
        newer.c.proposed.is_(False),
    )
    trained = select(links.c.id).where(
        links.c.window_id == plans.c.window_id, links.c.generation == plans.c.generation
    )
    wanted = (
        select(job_windows.c.job_row)
        .join(jobs, jobs.c.id == job_windows.c.job_row)
        .where(jobs.c.pipeline == bindparam("pipeline"), is_unended())
        .where(
            job_windows.c.window == windows.c.key, job_windows.c.generation == plans.c.generation
        )
    )
    return (
        select(plans.c.id, plans.c.window_id, windows.c.key, plans.c.generation)
        .join(windows, windows.c.id == plans.c.window_id)
        .where(windows.c.pipeline == bindparam("pipeline"), IN_RANGE)
        .where(replaced.exists(), ~trained.exists(), ~wanted.exists())
        .order_by(*IN_ORDER, plans.c.generation)
    )


# Built once, since building such a statement takes longer than executing it.
_PLANNED = windows_like(select(plans.c.id).where(plans.c.window_id == windows.c.id).exists())
_REPLACED = _replaced()
