"""Links of model lines, read in full from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select, tuple_

from forebay.config.specs.windows import Spanned, order_of
from forebay.datatasks.plans.window_order import place, span
from forebay.executors.model_line.link import FileKind, Link, Parent
from forebay.executors.model_line.rows import file_rows, source_rows
from forebay.executors.model_line.rows.line_rows import (
    AFTER,
    BEFORE,
    EVER,
    IN_ORDER,
    LATEST_FIRST,
    OF_GENERATION,
    OF_LINE,
    OF_WINDOW,
    OF_WINDOWS,
    is_newest,
)
from forebay.home.database.tables import batches, links, windows
from forebay.home.store.base import Stored
from forebay.system.instants import from_us

# Fields of a link that are columns of the same name.
PLAIN = (
    "generation",
    "step",
    "steps",
    "resumed_from_step",
    "resumed_from_runtime",
    "reread_rows",
    "model_fingerprint",
)
_parents = links.alias("parents")
_parent_windows = windows.alias("parent_windows")
# Built once, since building a statement takes longer than executing it.
_LINKS = (
    select(
        links,
        windows.c.key.label("window"),
        _parent_windows.c.key.label("parent_window"),
        _parents.c.generation.label("parent_generation"),
    )
    .select_from(links)
    .join(windows, windows.c.id == links.c.window_id)
    .outerjoin(_parents, _parents.c.id == links.c.parent_id)
    .outerjoin(_parent_windows, _parent_windows.c.id == _parents.c.window_id)
    .where(OF_LINE)
)
_NEWEST_LINKS = _LINKS.where(is_newest()).order_by(*IN_ORDER)
_NEWEST_OF_WINDOWS = _LINKS.where(is_newest(), OF_WINDOWS)
_LINK = _LINKS.where(OF_WINDOW, OF_GENERATION).limit(1)
_NEWEST = _LINKS.where(OF_WINDOW).order_by(links.c.generation.desc()).limit(1)
_BETWEEN = _NEWEST_LINKS.where(
    ~AFTER, place(links) >= tuple_(bindparam("first_end"), bindparam("first_start"))
)
_LINKS_AFTER = _NEWEST_LINKS.where(AFTER).limit(bindparam("count"))
_LAST_LINKS = _LINKS.where(BEFORE, is_newest()).order_by(*LATEST_FIRST).limit(bindparam("count"))
_LINK_BEFORE = _LINKS.where(BEFORE).order_by(*LATEST_FIRST).limit(1)


def link_of(
    connection: Connection, line: int | None, window: str, generation: int | None = None
) -> Link | None:
    """One link of a window, or its newest; None where there is none."""
    asked = {"line": line, "window": window}
    if generation is None:
        return _first(connection, _NEWEST, asked)
    return _first(connection, _LINK, asked | {"generation": generation})


def link_before(connection: Connection, line: int | None, one: Spanned) -> Link | None:
    """The newest link of the last window before this one; None where the line begins."""
    return _first(connection, _LINK_BEFORE, {"line": line, **span(one)})


def first_link(connection: Connection, line: int | None) -> Link | None:
    """The newest link of the window that the line begins with; None for an empty line."""
    return _first(connection, _NEWEST_LINKS.limit(1), {"line": line})


def last_links(connection: Connection, line: int | None, count: int = 1) -> list[Link]:
    asked = {"line": line, "count": count, "end": EVER, "start": EVER}
    return list(reversed(_all(connection, _LAST_LINKS, asked)))


def all_links(connection: Connection, line: int | None) -> list[Link]:
    return _all(connection, _LINKS.order_by(*IN_ORDER), {"line": line})


def newest_links(connection: Connection, line: int | None, keys: Iterable[str]) -> dict[str, Link]:
    """The newest links of these windows, in order; windows without one are left out."""
    found: list[Link] = []
    for some in batches(keys):
        found += _all(connection, _NEWEST_OF_WINDOWS, {"line": line, "windows": some})
    return {link.window: link for link in sorted(found, key=order_of)}


def links_between(
    connection: Connection, line: int | None, first: Spanned, last: Spanned
) -> list[Link]:
    since = {f"first_{name}": instant for name, instant in span(first).items()}
    return _all(connection, _BETWEEN, {"line": line, **since, **span(last)})


def links_after(connection: Connection, line: int | None, one: Spanned, count: int) -> list[Link]:
    """The newest links of that many windows after this one, in order."""
    return _all(connection, _LINKS_AFTER, {"line": line, "count": count, **span(one)})


def _first(connection: Connection, rows: Select[Any], asked: Mapping[str, Any]) -> Link | None:
    return next(iter(_all(connection, rows, asked)), None)


def _all(connection: Connection, rows: Select[Any], asked: Mapping[str, Any]) -> list[Link]:
    found = connection.execute(rows, asked).all()
    by_source = source_rows.of_links(connection, (row.id for row in found))
    files = file_rows.files_of(connection, by_source)
    return [_link(row, source_rows.facts_of(by_source[row.id]), files) for row in found]


def _link(
    row: Row[Any], facts: dict[str, Any], files: Mapping[int, dict[FileKind, Stored]]
) -> Link:
    parent = None
    if row.parent_window is not None:
        parent = Parent(window=row.parent_window, generation=row.parent_generation)
    return Link(
        window=row.window,
        start=from_us(row.starts_at),
        end=from_us(row.ends_at),
        parent=parent,
        files=files.get(row.id, {}),
        started_at=from_us(row.started_at),
        finished_at=from_us(row.finished_at),
        **facts,
        **{name: getattr(row, name) for name in PLAIN},
    )
