"""Rows of model lines and their links, read and written inside somebody's transaction.

Light: imports neither Arrow nor NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    Select,
    bindparam,
    func,
    insert,
    select,
    tuple_,
)

from forebay.config.windows import Spanned, order_of
from forebay.datatasks.tasks import OffsetsRead
from forebay.datatasks.window_order import (
    AFTER,
    BEFORE,
    IN_ORDER,
    in_order,
    place,
    span,
)
from forebay.errors import InfrastructureError
from forebay.executors.model_line import file_rows
from forebay.executors.model_line.link import FileKind, Head, Link, Parent, ReadRows
from forebay.home.rows import batches, inserted_id
from forebay.home.store import Stored
from forebay.home.tables import lines, link_rows, links, plans, windows
from forebay.mixture.row_sums import RowSums
from forebay.system.instants import from_us, now_us, to_us

_SUMS = tuple(RowSums.model_fields)
_OFFSETS = tuple(OffsetsRead.model_fields)
_parents = links.alias("parents")
_parent_windows = windows.alias("parent_windows")
_others = links.alias("others")
_in_order = (*IN_ORDER, links.c.generation)
# Later than any window: who looks for what comes before it finds the last ones by their index.
_EVER = 2**62
_backwards = tuple(each.desc() for each in _in_order)
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


class Placed(NamedTuple):
    """A link's name, and its window's interval."""

    name: Parent
    start: datetime
    end: datetime


def line_id(connection: Connection, pipeline: str, line: str) -> int | None:
    """The id of a line; None before anything of it was stored."""
    return connection.scalar(_LINE, {"pipeline": pipeline, "line": line})


def locked_line(connection: Connection, pipeline: str, line: str) -> int:
    """The id of a line, made where it is new; nobody else changes the line until the end."""
    found = connection.scalar(_LOCKED_LINE, {"pipeline": pipeline, "line": line})
    if found is None:
        new = insert(lines).values(pipeline=pipeline, line=line, lease_epoch=0)
        found = inserted_id(connection.execute(new))
    return found


def require_id(connection: Connection, line: int, name: Parent) -> int:
    """The id of a link's row.

    Raises:
        InfrastructureError: when there is no such link.
    """
    found = link_id(connection, line, name)
    if found is None:
        raise InfrastructureError(
            f"generation {name.generation} of window {name.window} has no link any more"
        )
    return found


def trained_windows(connection: Connection, line: int | None) -> list[str]:
    """Keys of the windows that have a link, in order."""
    rows = (
        select(windows.c.key)
        .where(select(links.c.id).where(is_of(line), _of_window()).exists())
        .order_by(*IN_ORDER)
    )
    return list(connection.scalars(rows))


def generations(
    connection: Connection, of: Iterable[tuple[str, str]]
) -> dict[tuple[str, str, str], list[int]]:
    """Generations in which windows have a link, ascending, by pipeline, line and window.

    of: pipelines and windows. There may be more in the answer than was asked for.
    """
    found: dict[tuple[str, str, str], list[int]] = {}
    for some in batches(of):
        names = {"pipelines": {one for one, _ in some}, "keys": {key for _, key in some}}
        for pipeline, line, key, generation in connection.execute(_GENERATIONS, names):
            found.setdefault((pipeline, line, key), []).append(generation)
    return found


def link_of(
    connection: Connection, line: int | None, window: str, generation: int | None = None
) -> Link | None:
    """One link of a window, or its newest; None where it is not there."""
    asked = {"line": line, "window": window}
    if generation is None:
        return _first(connection, _NEWEST, asked)
    return _first(connection, _LINK, asked | {"generation": generation})


def link_before(connection: Connection, line: int | None, one: Spanned) -> Link | None:
    """The newest link of the last window before this one; None where the line begins."""
    return _first(connection, _LINK_BEFORE, {"line": line, **span(one)})


def name_before(connection: Connection, line: int | None, one: Spanned) -> Placed | None:
    """As `link_before`, for who wants to know which it is and no more."""
    row = connection.execute(_NAME_BEFORE, {"line": line, **span(one)}).one_or_none()
    if row is None:
        return None
    name = Parent(window=row.key, generation=row.generation)
    return Placed(name, from_us(row.starts_at), from_us(row.ends_at))


def newest_generation(connection: Connection, line: int | None, window: str) -> int | None:
    """The generation of a window's newest link; None where it has none."""
    found: int | None = connection.scalar(_NEWEST_GENERATION, {"line": line, "window": window})
    return found


def first_link(connection: Connection, line: int | None) -> Link | None:
    """The newest link of the window that the line begins with; None for an empty line."""
    return _first(connection, _NEWEST_LINKS.limit(1), {"line": line})


def last_links(connection: Connection, line: int | None, count: int) -> list[Link]:
    """The newest links of the last windows, in order."""
    rows = _LINKS.where(BEFORE, is_newest()).order_by(*_backwards).limit(count)
    return list(reversed(_all(connection, rows, {"line": line, "end": _EVER, "start": _EVER})))


def all_links(connection: Connection, line: int | None) -> list[Link]:
    """Every link of a line, by window and generation."""
    return _all(connection, _LINKS.order_by(*_in_order), {"line": line})


def newest_links(connection: Connection, line: int | None, keys: Iterable[str]) -> list[Link]:
    """The newest links of these windows, in order; windows without one are left out."""
    found: list[Link] = []
    for some in batches(keys):
        found += _all(connection, _NEWEST_LINKS.where(windows.c.key.in_(some)), {"line": line})
    return sorted(found, key=order_of)


def links_between(
    connection: Connection, line: int | None, first: Spanned, last: Spanned
) -> list[Link]:
    """The newest links from one window to another, in order."""
    since = {f"first_{name}": instant for name, instant in span(first).items()}
    return _all(connection, _BETWEEN, {"line": line, **since, **span(last)})


def links_after(connection: Connection, line: int | None, one: Spanned, count: int) -> list[Link]:
    """The newest links of so many windows after this one, in order."""
    return _all(connection, _LINKS_AFTER, {"line": line, "count": count, **span(one)})


def planned_window(connection: Connection, pipeline: str, name: Parent) -> int:
    """The id of a window whose plan of this generation is there.

    Raises:
        InfrastructureError: when it is not.
    """
    planned = {"pipeline": pipeline, "window": name.window, "generation": name.generation}
    found: int | None = connection.scalar(_PLANNED, planned)
    if found is None:
        raise InfrastructureError(
            f"generation {name.generation} of window {name.window} is gone: the window was "
            "forgotten meanwhile"
        )
    return found


def store_link(connection: Connection, line: int, pipeline: str, link: Link) -> int:
    """Store a link; from now on the window counts as trained in this generation.

    Returns:
        The id of its window.

    Raises:
        InfrastructureError: when its plan is gone, or the link that it was built on, or when its
            model did not begin where that one ended.
    """
    of_window = planned_window(connection, pipeline, link.name)
    parent_id = _continued(connection, line, link)
    values = {name: getattr(link, name) for name in _PLAIN}
    values |= {
        "line_id": line,
        "window_id": of_window,
        "parent_id": parent_id,
        "started_at": to_us(link.started_at),
        "finished_at": to_us(link.finished_at),
        "recorded_at": now_us(),
        "late": connection.scalar(_LATER, {"line": line, **span(link)}) is not None,
    }
    stored_id = inserted_id(connection.execute(_STORE_LINK, values))
    rows = [
        {"link_id": stored_id, "source": source, "position": number, **_row_of(link, source)}
        for number, source in enumerate(link.seen)
    ]
    if rows:
        connection.execute(_STORE_ROWS, rows)
    file_rows.store(connection, stored_id, link.files)
    return of_window


def heads(connection: Connection, line: int | None) -> list[Head]:
    """The newest link of each window in short, in order."""
    found = connection.execute(_NEWEST_LINKS, {"line": line}).all()
    kept = file_rows.with_checkpoint(connection, line)
    return [
        Head(
            (from_us(row.ends_at), from_us(row.starts_at)),
            Parent(window=row.window, generation=row.generation),
            _parent(row),
            row.id in kept,
        )
        for row in found
    ]


def link_id(connection: Connection, line: int | None, name: Parent) -> int | None:
    """The id of a link's row."""
    return connection.scalar(_LINK_ID, _asked(line, name))


def _asked(line: int | None, name: Parent) -> dict[str, Any]:
    return {"line": line, "window": name.window, "generation": name.generation}


_PLAIN = (
    "generation",
    "step",
    "steps",
    "resumed_from_step",
    "resumed_from_runtime",
    "reread_rows",
    "model_fingerprint",
)


def is_of(line: int | None) -> ColumnElement[bool]:
    """A link of this line."""
    return links.c.line_id == line


def _of_window() -> ColumnElement[bool]:
    return links.c.window_id == windows.c.id


def is_newest() -> ColumnElement[bool]:
    """A link that no later generation of its window has taken the place of."""
    newest = select(func.max(_others.c.generation)).where(
        _others.c.line_id == links.c.line_id, _others.c.window_id == links.c.window_id
    )
    return links.c.generation == newest.scalar_subquery()


def next_link(column: str) -> ScalarSelect[Any]:
    """A column of the newest link of the window after that of an enclosing statement's link.

    NULL where the line ends. The statement selects from `links` and `windows`.
    """
    following, at = links.alias("next_links"), windows.alias("next_windows")
    return (
        select(following.c[column])
        .join(at, at.c.id == following.c.window_id)
        .where(following.c.line_id == links.c.line_id, at.c.pipeline == windows.c.pipeline)
        .where(place(at) > place())
        .order_by(*in_order(at), following.c.generation.desc())
        .limit(1)
        .correlate(links, windows)
        .scalar_subquery()
    )


def _first(connection: Connection, rows: Select[Any], asked: Mapping[str, Any]) -> Link | None:
    return next(iter(_all(connection, rows, asked)), None)


def _all(connection: Connection, rows: Select[Any], asked: Mapping[str, Any]) -> list[Link]:
    found = connection.execute(rows, asked).all()
    sums: dict[int, list[Row[Any]]] = {row.id: [] for row in found}
    for ids in batches(sums):
        for row in connection.execute(_LINK_SUMS, {"ids": ids}):
            sums[row.link_id].append(row)
    files = file_rows.files_of(connection, sums)
    return [_link(row, sums[row.id], files.get(row.id, {})) for row in found]


def _link(row: Row[Any], sums: Sequence[Row[Any]], files: dict[FileKind, Stored]) -> Link:
    return Link(
        window=row.window,
        start=from_us(row.starts_at),
        end=from_us(row.ends_at),
        parent=_parent(row),
        base_seen={each.source: _sums(each, "base") for each in sums},
        seen={each.source: _sums(each, "seen") for each in sums},
        read={each.source: _read(each) for each in sums},
        learnt={each.source: found for each in sums if (found := json.loads(each.learnt))},
        files=files,
        started_at=from_us(row.started_at),
        finished_at=from_us(row.finished_at),
        **{name: getattr(row, name) for name in _PLAIN},
    )


def _parent(row: Row[Any]) -> Parent | None:
    if row.parent_window is None:
        return None
    return Parent(window=row.parent_window, generation=row.parent_generation)


def _read(row: Row[Any]) -> ReadRows:
    return ReadRows(
        rows=row.served_rows,
        dead=row.dead_rows,
        late=row.late_rows,
        odd_timestamps=row.odd_timestamps,
        first_odd=row.first_odd,
        offsets=OffsetsRead(**{kind: getattr(row, f"offsets_{kind}") for kind in _OFFSETS}),
    )


def _row_of(link: Link, source: str) -> dict[str, int | str]:
    read = link.read.get(source, ReadRows())
    base, seen = link.base_seen.get(source, RowSums()), link.seen[source]
    sums = {
        f"{when}_{name}": getattr(of, name)
        for when, of in (("base", base), ("seen", seen))
        for name in _SUMS
    }
    return {
        **sums,
        "served_rows": read.rows,
        "dead_rows": read.dead,
        "late_rows": read.late,
        "odd_timestamps": read.odd_timestamps,
        "first_odd": read.first_odd,
        "learnt": json.dumps(link.learnt.get(source, {})),
        **{f"offsets_{kind}": getattr(read.offsets, kind) for kind in _OFFSETS},
    }


def _sums(row: Row[Any], when: str) -> RowSums:
    return RowSums(**{name: getattr(row, f"{when}_{name}") for name in _SUMS})


def _continued(connection: Connection, line: int, link: Link) -> int | None:
    """The id of the link that a model was started from, and whose rows it began with.

    Otherwise rows are lost, or learnt twice.
    """
    parent_id, ended = None, dict[str, RowSums]()
    if (parent := link.parent) is not None:
        rows = connection.execute(_SEEN, _asked(line, parent)).all()
        if not rows:
            raise InfrastructureError(
                f"generation {parent.generation} of window {parent.window} is gone, and a window "
                "was trained from its model: train the window again"
            )
        parent_id = rows[0].id
        ended = {row.source: _sums(row, "seen") for row in rows if row.source is not None}
    for source, base in link.base_seen.items():
        before = ended.get(source, RowSums())
        if base != before:
            raise InfrastructureError(
                f"window {link.window} was begun from a model that has seen {base.rows} rows of "
                f"{source}, and the window before ended with {before.rows} (or with other ones): "
                "it is not stored; run again, it begins anew"
            )
    return parent_id


# Made once, since making a statement takes longer than its execution.
_LINE = select(lines.c.id).where(
    lines.c.pipeline == bindparam("pipeline"), lines.c.line == bindparam("line")
)
_LOCKED_LINE = _LINE.with_for_update()
_PIPELINE = select(lines.c.pipeline).where(lines.c.id == bindparam("line")).scalar_subquery()
_OF_LINE = links.c.line_id == bindparam("line")
_OF_WINDOW = windows.c.key == bindparam("window")
_OF_GENERATION = links.c.generation == bindparam("generation")
_IDS = select(links.c.id).join(windows).where(_OF_LINE, windows.c.pipeline == _PIPELINE)
_LINK_ID = _IDS.where(_OF_WINDOW, _OF_GENERATION)
_SEEN = _LINK_ID.outerjoin(link_rows, link_rows.c.link_id == links.c.id).add_columns(
    link_rows.c.source, *(link_rows.c[f"seen_{name}"] for name in _SUMS)
)
_LINKS = (
    select(
        links,
        windows.c.key.label("window"),
        windows.c.starts_at,
        windows.c.ends_at,
        _parent_windows.c.key.label("parent_window"),
        _parents.c.generation.label("parent_generation"),
    )
    .select_from(links)
    .join(windows, windows.c.id == links.c.window_id)
    .outerjoin(_parents, _parents.c.id == links.c.parent_id)
    .outerjoin(_parent_windows, _parent_windows.c.id == _parents.c.window_id)
    # The pipeline too: its windows are found in order, and nothing has to be sorted.
    .where(_OF_LINE, windows.c.pipeline == _PIPELINE)
)
_NEWEST_LINKS = _LINKS.where(is_newest()).order_by(*_in_order)
_LINK = _LINKS.where(_OF_WINDOW, _OF_GENERATION).limit(1)
_NEWEST = _LINKS.where(_OF_WINDOW).order_by(links.c.generation.desc()).limit(1)
_BETWEEN = _NEWEST_LINKS.where(
    ~AFTER, place() >= tuple_(bindparam("first_end"), bindparam("first_start"))
)
_LINKS_AFTER = _NEWEST_LINKS.where(AFTER).limit(bindparam("count"))
_LINK_BEFORE = _LINKS.where(BEFORE).order_by(*_backwards).limit(1)
_NAME_BEFORE = (
    _IDS.with_only_columns(
        windows.c.key, links.c.generation, windows.c.starts_at, windows.c.ends_at
    )
    .where(BEFORE)
    .order_by(*_backwards)
    .limit(1)
)
_NEWEST_GENERATION = _IDS.with_only_columns(func.max(links.c.generation)).where(_OF_WINDOW)
_PLANNED = (
    select(windows.c.id)
    .join(plans)
    .where(windows.c.pipeline == bindparam("pipeline"), _OF_WINDOW)
    .where(plans.c.generation == bindparam("generation"))
)
_STORE_LINK = insert(links)
_STORE_ROWS = insert(link_rows)
_LATER = _IDS.where(AFTER).limit(1)
_LINK_SUMS = (
    select(link_rows)
    .where(link_rows.c.link_id.in_(bindparam("ids", expanding=True)))
    .order_by(link_rows.c.link_id, link_rows.c.position)
)
