"""Rows of model lines: which lines exist, and which windows have links, in which generations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, ScalarSelect, bindparam, func, insert, select

from forebay.config.specs.windows import Spanned
from forebay.datatasks.plans.window_order import ONE, in_order, place, span
from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import Parent
from forebay.home.database.tables import batches, inserted_id, lines, links, plans, windows
from forebay.system.instants import from_us

_others = links.alias("others")
_LINE = select(lines.c.id).where(
    lines.c.pipeline == bindparam("pipeline"), lines.c.line == bindparam("line")
)
_LOCKED_LINE = _LINE.with_for_update()
# Built once: whoever waits for a turn asks this every second.
_GENERATIONS = (
    select(lines.c.pipeline, lines.c.line, windows.c.key, links.c.generation)
    .select_from(lines)
    .join(windows, windows.c.pipeline == lines.c.pipeline)
    .join(links, (links.c.line_id == lines.c.id) & (links.c.window_id == windows.c.id))
    .where(lines.c.pipeline.in_(bindparam("pipelines", expanding=True)))
    .where(windows.c.key.in_(bindparam("keys", expanding=True)))
    .order_by(links.c.generation)
)
# Of statements that select from `links` and `windows`, with the parameters `line`, `window` or
# `windows`, and `generation`. The pipeline is part of them so that the index on both is used.
OF_LINE = links.c.line_id == bindparam("line")
_OF_PIPELINE = (
    windows.c.pipeline
    == select(lines.c.pipeline).where(lines.c.id == bindparam("line")).scalar_subquery()
)
OF_WINDOW = (windows.c.key == bindparam("window")) & _OF_PIPELINE
OF_WINDOWS = windows.c.key.in_(bindparam("windows", expanding=True)) & _OF_PIPELINE
OF_GENERATION = links.c.generation == bindparam("generation")
# Later than any window: searching before it finds the last ones through their index.
EVER = 2**62
# Links before a window and after it, in the order of windows.
BEFORE = place(links) < ONE
AFTER = place(links) > ONE
IN_ORDER = (*in_order(links), links.c.generation)
LATEST_FIRST = tuple(each.desc() for each in IN_ORDER)
_IDS = select(links.c.id).join(windows).where(OF_LINE)
LINK_ID = _IDS.where(OF_WINDOW, OF_GENERATION)
_NAME_BEFORE = (
    _IDS.with_only_columns(windows.c.key, links.c.generation, links.c.starts_at, links.c.ends_at)
    .where(BEFORE)
    .order_by(*LATEST_FIRST)
    .limit(1)
)
_NEWEST_GENERATION = _IDS.with_only_columns(func.max(links.c.generation)).where(OF_WINDOW)
_LATER = select(links.c.id).where(OF_LINE, AFTER).limit(1)
_PLANNED = (
    select(windows.c.id)
    .join(plans)
    .where(windows.c.pipeline == bindparam("pipeline"), windows.c.key == bindparam("window"))
    .where(plans.c.generation == bindparam("generation"))
)


class Placed(NamedTuple):
    name: Parent
    start: datetime
    end: datetime


def line_id(connection: Connection, pipeline: str, line: str) -> int | None:
    """The id of a line; None before anything is stored for it."""
    return connection.scalar(_LINE, {"pipeline": pipeline, "line": line})


def locked_line(connection: Connection, pipeline: str, line: str) -> int:
    """The id of a line, created if new; nobody else changes it until the transaction ends."""
    found = connection.scalar(_LOCKED_LINE, {"pipeline": pipeline, "line": line})
    if found is None:
        new = insert(lines).values(pipeline=pipeline, line=line, lease_epoch=0)
        found = inserted_id(connection.execute(new))
    return found


def link_id(connection: Connection, line: int | None, name: Parent) -> int | None:
    return connection.scalar(LINK_ID, asked_for(line, name))


def asked_for(line: int | None, name: Parent) -> dict[str, Any]:
    return {"line": line, "window": name.window, "generation": name.generation}


def require_id(connection: Connection, line: int, name: Parent) -> int:
    """The id of a link's row.

    Raises:
        InfrastructureError: when there is no such link.
    """
    found = link_id(connection, line, name)
    if found is None:
        raise InfrastructureError(
            f"generation {name.generation} of window {name.window} no longer has a link"
        )
    return found


def trained_windows(connection: Connection, line: int | None) -> list[str]:
    """Keys of the windows that have a link, in order."""
    rows = select(windows.c.key).join(links, links.c.window_id == windows.c.id).order_by(*IN_ORDER)
    return list(connection.scalars(rows.where(OF_LINE, is_newest()), {"line": line}))


def generations(
    connection: Connection, of: Iterable[tuple[str, str]]
) -> dict[tuple[str, str, str], list[int]]:
    """Generations in which windows have a link, ascending, by pipeline, line and window.

    of: pipelines and windows. The answer may contain more than was asked for.
    """
    found: dict[tuple[str, str, str], list[int]] = {}
    for some in batches(of):
        names = {"pipelines": {one for one, _ in some}, "keys": {key for _, key in some}}
        for pipeline, line, key, generation in connection.execute(_GENERATIONS, names):
            found.setdefault((pipeline, line, key), []).append(generation)
    return found


def newest_generation(connection: Connection, line: int | None, window: str) -> int | None:
    found: int | None = connection.scalar(_NEWEST_GENERATION, {"line": line, "window": window})
    return found


def name_before(connection: Connection, line: int | None, one: Spanned) -> Placed | None:
    """The newest link of the last window before this one; None where the line begins."""
    row = connection.execute(_NAME_BEFORE, {"line": line, **span(one)}).one_or_none()
    if row is None:
        return None
    name = Parent(window=row.key, generation=row.generation)
    return Placed(name, from_us(row.starts_at), from_us(row.ends_at))


def is_followed(connection: Connection, line: int, one: Spanned) -> bool:
    return connection.scalar(_LATER, {"line": line, **span(one)}) is not None


def planned_window(connection: Connection, pipeline: str, name: Parent) -> int:
    """The id of a window that has a plan of this generation.

    Raises:
        InfrastructureError: when it has none.
    """
    planned = {"pipeline": pipeline, "window": name.window, "generation": name.generation}
    found: int | None = connection.scalar(_PLANNED, planned)
    if found is None:
        raise InfrastructureError(
            f"generation {name.generation} of window {name.window} is gone: the window was "
            "forgotten meanwhile"
        )
    return found


def is_newest() -> ColumnElement[bool]:
    newest = select(func.max(_others.c.generation)).where(
        _others.c.line_id == links.c.line_id, _others.c.window_id == links.c.window_id
    )
    return links.c.generation == newest.scalar_subquery()


def next_link(column: str) -> ScalarSelect[Any]:
    """A column of the newest link of the window after the one of the enclosing statement's link.

    NULL where the line ends. The statement selects from `links`.
    """
    following = links.alias("next_links")
    return (
        select(following.c[column])
        .where(following.c.line_id == links.c.line_id)
        .where(place(following) > place(links))
        .order_by(*in_order(following), following.c.generation.desc())
        .limit(1)
        .correlate(links)
        .scalar_subquery()
    )
