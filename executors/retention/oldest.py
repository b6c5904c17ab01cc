"""The oldest of the newest windows of a pipeline that something is true of."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, select

from forebay.config.windows import Interval
from forebay.datatasks.window_order import IN_ORDER
from forebay.home.tables import windows
from forebay.system.instants import from_us


def oldest_of(
    connection: Connection, pipeline: str, condition: ColumnElement[bool], count: int
) -> Interval | None:
    """Where the oldest of so many windows is; None where there are fewer."""
    newest = (
        select(windows.c.starts_at, windows.c.ends_at)
        .where(windows.c.pipeline == pipeline, condition)
        .order_by(*(each.desc() for each in IN_ORDER))
    )
    row = connection.execute(newest.offset(count - 1).limit(1)).one_or_none()
    return None if row is None else Interval(from_us(row.starts_at), from_us(row.ends_at))
