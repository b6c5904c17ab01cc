"""Which links of a line are not built on the newest models before them: computed, never stored.

A link breaks the chain when it was not started from the newest link of the window before its own.
It is stale then, and so is every later link, whatever that one was started from.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, Subquery, bindparam, func, select

from forebay.datatasks.plans.window_order import in_order, span
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.rows.line_rows import (
    BEFORE,
    is_newest,
    name_before,
    next_link,
    trained_windows,
)
from forebay.home.database.tables import links, windows


def break_reason(parent: Parent | None, before: Parent | None) -> str | None:
    """Why a link breaks the chain; None where it does not.

    before: the newest link of the window before its own.
    """
    if parent == before:
        return None
    if before is not None and (parent is None or parent.window != before.window):
        return f"stale (built before {before.window} was trained)"
    if parent is None:
        return None
    return f"stale (built on generation {parent.generation} of {parent.window})"


def stale_reason(connection: Connection, line: int | None, link: Link) -> str | None:
    """Why a link is stale, by the nearest break; None when it is not."""
    before = name_before(connection, line, link)
    own = break_reason(link.parent, before.name if before is not None else None)
    if own is not None or before is None:
        return own
    broken = connection.execute(_BROKEN_BEFORE, {"line": line, **span(before)}).first()
    return None if broken is None else _reason(broken)


def stale_reasons(connection: Connection, line: int | None) -> dict[str, str]:
    found = connection.execute(_BROKEN, {"line": line})
    breaks = {row.window: _reason(row) for row in found}
    if not breaks:
        return {}
    reasons: dict[str, str] = {}
    reason = ""
    for window in trained_windows(connection, line):
        reason = breaks.get(window, reason)
        if reason:
            reasons[window] = reason
    return reasons


def _reason(row: Row[Any]) -> str:
    reason = break_reason(_name(row, "parent"), _name(row, "before"))
    if reason is None:
        raise RuntimeError(f"window {row.window} does not break the chain")
    return reason


def _name(row: Row[Any], which: str) -> Parent | None:
    window = getattr(row, f"{which}_window")
    if window is None:
        return None
    return Parent(window=window, generation=getattr(row, f"{which}_generation"))


def _broken() -> Select[Any]:
    """All newest links that break the chain, in order."""
    rows = select(links.c.id, links.c.parent_id, windows.c.key, *in_order(links))
    rows = rows.join(windows, windows.c.id == links.c.window_id)
    newest = rows.where(links.c.line_id == bindparam("line"), is_newest()).subquery("newest")
    order = (newest.c.ends_at, newest.c.starts_at)
    chained = select(
        newest, func.lag(newest.c.id).over(order_by=order).label("before_id")
    ).subquery("chained")
    return (
        _named(chained)
        .where(chained.c.before_id.is_not(None))
        .where(chained.c.parent_id.is_distinct_from(chained.c.before_id))
        .order_by(chained.c.ends_at, chained.c.starts_at)
    )


def _broken_before() -> Select[Any]:
    """The last newest link that breaks the chain, among the windows up to a given one.

    A trainer starts from the newest link before its window, and a line has one trainer at a time.
    So the chain breaks only after a late link: one stored when a later window was already trained.
    """
    rows = select(links.c.id.label("before_id"), next_link("id").label("next_id"))
    rows = rows.add_columns(*in_order(links))
    of_line = links.c.line_id == bindparam("line")
    late = rows.where(of_line, links.c.late.is_(True), is_newest(), BEFORE).subquery("late")
    own, own_windows = links.alias("own"), windows.alias("own_windows")
    chained = (
        select(late, own.c.parent_id, own_windows.c.key)
        .join(own, own.c.id == late.c.next_id)
        .join(own_windows, own_windows.c.id == own.c.window_id)
        .subquery("chained")
    )
    return (
        _named(chained)
        .where(chained.c.parent_id.is_distinct_from(chained.c.before_id))
        .order_by(chained.c.ends_at.desc(), chained.c.starts_at.desc())
        .limit(1)
    )


def _named(chained: Subquery) -> Select[Any]:
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
    )


# Built once, since building such a statement takes longer than executing it.
_BROKEN = _broken()
_BROKEN_BEFORE = _broken_before()
