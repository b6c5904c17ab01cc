"""Plans of older windows that were replaced: no model was trained from them, and no job will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, select, tuple_

from forebay.datatasks.window_order import IN_ORDER, comes_before
from forebay.executors.job.job_rows import is_unended
from forebay.executors.retention.oldest import oldest_of
from forebay.home.garbage import unnamed
from forebay.home.rows import batches
from forebay.home.tables import job_windows, jobs, links, manifests, plans, requests, windows

_newer = plans.alias("newer")


class OldPlan(NamedTuple):
    """A plan that may go. window: its key."""

    plan: int
    window_id: int
    window: str
    generation: int


def old_plans(connection: Connection, pipeline: str, count: int) -> list[OldPlan]:
    """Plans that may go, the oldest first. count: newest windows that keep all of theirs."""
    planned = select(plans.c.id).where(plans.c.window_id == windows.c.id).exists()
    oldest = oldest_of(connection, pipeline, planned, count)
    if oldest is None:
        return []
    replaced = select(_newer.c.id).where(
        _newer.c.window_id == plans.c.window_id, _newer.c.generation > plans.c.generation
    )
    trained = select(links.c.id).where(
        links.c.window_id == plans.c.window_id, links.c.generation == plans.c.generation
    )
    wanted = (
        select(job_windows.c.job_row)
        .join(jobs, jobs.c.id == job_windows.c.job_row)
        .where(jobs.c.pipeline == pipeline, is_unended())
        .where(
            job_windows.c.window == windows.c.key, job_windows.c.generation == plans.c.generation
        )
    )
    rows = (
        select(plans.c.id, plans.c.window_id, windows.c.key, plans.c.generation)
        .join(windows, windows.c.id == plans.c.window_id)
        .where(windows.c.pipeline == pipeline, comes_before(oldest))
        .where(replaced.exists(), ~trained.exists(), ~wanted.exists())
        .order_by(*IN_ORDER, plans.c.generation)
    )
    return [OldPlan(*row) for row in connection.execute(rows)]


def forget_plans(connection: Connection, old: Sequence[OldPlan]) -> list[str]:
    """Remove plans, and what was decided for requests in favour of them.

    Returns:
        Names in the store that nothing names any more: generations may share them.
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
