"""Which links of a line are not built on the newest models before them: computed, never stored.

A link breaks the chain when it was not started from the newest link of the window before its own.
It is stale then, and so is every later link, whatever that one was started from.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, func, select

from forebay.config.windows import Spanned
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.link_rows import (
    is_newest,
    is_of,
    link_before,
    not_after,
    trained_windows,
)
from forebay.home.tables import links, windows


class Break(NamedTuple):
    """A window whose newest link breaks the chain, and why."""

    window: str
    reason: str


def break_reason(parent: Parent | None, before: Parent | None) -> str | None:
    """Why a link breaks the chain; None where it does not.

    Args:
        parent: the link that it was started from.
        before: the newest link of the window before it.
    """
    if parent == before:
        return None
    if before is not None and (parent is None or parent.window != before.window):
        return f"stale (built before {before.window} was trained)"
    if parent is None:
        return None
    return f"stale (built on generation {parent.generation} of {parent.window})"


def stale_reason(connection: Connection, line: int | None, link: Link) -> str | None:
    """Why a link is stale; None when it is not. The nearest break is named."""
    before = link_before(connection, line, link)
    own = break_reason(link.parent, before.name if before is not None else None)
    if own is not None or before is None:
        return own
    found = _breaks(connection, line, before)
    return found[-1].reason if found else None


def stale_reasons(connection: Connection, line: int | None) -> dict[str, str]:
    """Windows whose newest links are stale, in order, and why."""
    breaks = {each.window: each.reason for each in _breaks(connection, line, None)}
    if not breaks:
        return {}
    reasons: dict[str, str] = {}
    reason = ""
    for window in trained_windows(connection, line):
        reason = breaks.get(window, reason)
        if reason:
            reasons[window] = reason
    return reasons


def _breaks(connection: Connection, line: int | None, until: Spanned | None) -> list[Break]:
    """The newest links that break the chain, in order, up to a window."""
    return [
        Break(row.window, reason)
        for row in connection.execute(_broken(line, until))
        if (reason := break_reason(_name(row, "parent"), _name(row, "before"))) is not None
    ]


def _broken(line: int | None, until: Spanned | None) -> Select[Any]:
    rows = select(links.c.id, links.c.parent_id, windows.c.key, windows.c.ends_at)
    rows = rows.add_columns(windows.c.starts_at).select_from(links)
    rows = rows.join(windows, windows.c.id == links.c.window_id).where(is_of(line), is_newest())
    if until is not None:
        rows = rows.where(not_after(until))
    newest = rows.subquery("newest")
    order = (newest.c.ends_at, newest.c.starts_at)
    chained = select(
        newest, func.lag(newest.c.id).over(order_by=order).label("before_id")
    ).subquery("chained")
    parents, befores = links.alias("parents"), links.alias("befores")
    of_parents, of_befores = windows.alias("of_parents"), windows.alias("of_befores")
    return (
        select(
            chained.c.key.label("window"),
            of_parents.c.key.label("parent_window"),
            parents.c.generation.label("parent_generation"),
            of_befores.c.key.label("before_window"),
            befores.c.generation.label("before_generation"),
        )
        .select_from(chained)
        .outerjoin(parents, parents.c.id == chained.c.parent_id)
        .outerjoin(of_parents, of_parents.c.id == parents.c.window_id)
        .outerjoin(befores, befores.c.id == chained.c.before_id)
        .outerjoin(of_befores, of_befores.c.id == befores.c.window_id)
        .where(chained.c.parent_id.is_distinct_from(chained.c.before_id))
        .order_by(chained.c.ends_at, chained.c.starts_at)
    )


def _name(row: Row[Any], which: str) -> Parent | None:
    window = getattr(row, f"{which}_window")
    if window is None:
        return None
    return Parent(window=window, generation=getattr(row, f"{which}_generation"))
