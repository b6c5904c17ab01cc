"""Which windows of a pipeline are older than its newest ones that meet a condition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, func, select, tuple_

from forebay.config.windows import Interval
from forebay.datatasks.window_order import BEFORE, IN_ORDER, place, span
from forebay.home.tables import windows
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
        """The parameters of `IN_RANGE`."""
        since = {"end": _EVER, "start": _EVER} if self.since is None else span(self.since)
        return {
            **span(self.before),
            "since_end": since["end"],
            "since_start": since["start"],
        }


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

    Args:
        connection: of the transaction.
        found: see `windows_like`.
        asked: the parameters of its condition, and `pipeline`.
        count: how many of the newest windows are skipped.
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
