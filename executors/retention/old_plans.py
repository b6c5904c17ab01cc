"""Replaced plans of older windows, from which no model was trained and no job will train one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    func,
    select,
    tuple_,
)

from forebay.config.specs.windows import Interval
from forebay.datatasks.plans.window_order import BEFORE, IN_ORDER, place, span
from forebay.executors.job.job_rows import is_unended
from forebay.home.database.tables import (
    batches,
    job_windows,
    jobs,
    links,
    manifests,
    plans,
    requests,
    slices,
    windows,
)
from forebay.home.store.garbage import unnamed
from forebay.system.instants import from_us

# Earlier than any window.
_EVER = -(2**62)
_NUMBER = select(func.count()).select_from(
    select(windows.c.id)
    .where(windows.c.pipeline == bindparam("pipeline"))
    .limit(bindparam("limit"))
    .subquery()
)
# The windows of a range, for statements that are built once; `asked` has their parameters.
IN_RANGE = BEFORE & (place() >= tuple_(bindparam("since_end"), bindparam("since_start")))


class OlderWindows(NamedTuple):
    """Windows before `before`, from `since` on; None for all before it."""

    before: Interval
    since: Interval | None

    def asked(self) -> dict[str, int]:
        since = {"end": _EVER, "start": _EVER} if self.since is None else span(self.since)
        return {**span(self.before), "since_end": since["end"], "since_start": since["start"]}


def windows_like(condition: ColumnElement[bool]) -> Select[tuple[int, int]]:
    """The windows of a pipeline that meet a condition, the newest first; for `older_than`."""
    return (
        select(windows.c.starts_at, windows.c.ends_at)
        .where(windows.c.pipeline == bindparam("pipeline"), condition)
        .order_by(*(each.desc() for each in IN_ORDER))
        .offset(bindparam("offset"))
        .limit(bindparam("limit"))
    )


def passed(connection: Connection, pipeline: str, counts: Iterable[int]) -> list[int]:
    """The counts that a pipeline's number of windows exceeds: for others, no window is older.

    Finding the windows before the newest 10,000 takes a hundred times as long as counting them.
    """
    found = sorted(set(counts))
    asked = {"pipeline": pipeline, "limit": found[-1] + 1}
    number = connection.execute(_NUMBER, asked).scalar_one()
    return [count for count in found if count < number]


def older_than(
    connection: Connection,
    found: Select[tuple[int, int]],
    asked: dict[str, object],
    count: int,
    most: int | None,
) -> OlderWindows | None:
    """Windows before the newest `count`, at most that many; None where there are none.

    found: see `windows_like`. asked: the parameters of its condition, and `pipeline`.
    most: how many of the rest are meant, the newest first; None for all.
    """
    limit = 1 if most is None else 1 + most
    rows = connection.execute(found, {**asked, "offset": count - 1, "limit": limit}).all()
    if not rows:
        return None
    since = None if most is None or most >= len(rows) else _interval(rows[most])
    return OlderWindows(_interval(rows[0]), since)


def _interval(row: Row[tuple[int, int]]) -> Interval:
    return Interval(from_us(row.starts_at), from_us(row.ends_at))


class OldPlan(NamedTuple):
    plan: int
    window_id: int
    window: str
    generation: int


def old_plans(
    connection: Connection, pipeline: str, count: int, most: int | None = None
) -> list[OldPlan]:
    """Plans that may be removed, the oldest first.

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

    Returns names in the store that nothing refers to any more: generations may share them.
    """
    if not old:
        return []
    ids = [each.plan for each in old]
    names = connection.scalars(select(manifests.c.name).where(manifests.c.plan_id.in_(ids)))
    left = sorted(set(names))
    connection.execute(delete(manifests).where(manifests.c.plan_id.in_(ids)))
    connection.execute(delete(slices).where(slices.c.plan_id.in_(ids)))
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
