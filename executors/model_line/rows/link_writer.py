"""Stores a new link of a line, but only one that continues what was trained before."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.rows import file_rows, source_rows
from forebay.executors.model_line.rows.line_rows import (
    LINK_ID,
    asked_for,
    is_followed,
    planned_window,
)
from forebay.executors.model_line.rows.link_rows import PLAIN
from forebay.home.database.tables import inserted_id, judgements, link_files, link_rows, links
from forebay.mixture.row_sums import RowSums
from forebay.system.instants import now_us, to_us

_SEEN = LINK_ID.outerjoin(link_rows, link_rows.c.link_id == links.c.id).add_columns(
    *source_rows.SEEN
)
_STORE = insert(links)


def store_link(connection: Connection, line: int, pipeline: str, link: Link) -> int:
    """Store a link: the window counts as trained in this generation. Returns its window's id.

    Raises:
        InfrastructureError: when its plan or the link that it was built on is gone, or when its
            model did not begin where that link ended.
    """
    of_window = planned_window(connection, pipeline, link.name)
    parent_id = _continued(connection, line, link)
    values = {name: getattr(link, name) for name in PLAIN}
    values |= {
        "line_id": line,
        "window_id": of_window,
        "starts_at": to_us(link.start),
        "ends_at": to_us(link.end),
        "parent_id": parent_id,
        "started_at": to_us(link.started_at),
        "finished_at": to_us(link.finished_at),
        "recorded_at": now_us(),
        "late": is_followed(connection, line, link),
    }
    stored_id = inserted_id(connection.execute(_STORE, values))
    source_rows.store(connection, stored_id, link)
    file_rows.store(connection, stored_id, link.files)
    return of_window


def remove_links(connection: Connection, line: int) -> None:
    """Remove all links of a line. The pointer to what serves stays."""
    mine = select(links.c.id).where(links.c.line_id == line)
    for table in (judgements, link_rows, link_files):
        connection.execute(delete(table).where(table.c.link_id.in_(mine)))
    of_line = links.c.line_id == line
    connection.execute(update(links).where(of_line).values(parent_id=None))
    connection.execute(delete(links).where(of_line))


def _continued(connection: Connection, line: int, link: Link) -> int | None:
    """The id of the link that a model was started from, checked to have the same row sums.

    Otherwise rows would be lost, or trained on twice.
    """
    parent_id, ended = None, dict[str, RowSums]()
    if (parent := link.parent) is not None:
        rows = connection.execute(_SEEN, asked_for(line, parent)).all()
        if not rows:
            raise InfrastructureError(
                f"generation {parent.generation} of window {parent.window} is gone, but window "
                f"{link.window} was trained from its model: train window {link.window} again"
            )
        parent_id = rows[0].id
        ended = {row.source: source_rows.seen_in(row) for row in rows if row.source is not None}
    for source, base in link.base_seen.items():
        before = ended.get(source, RowSums())
        if base != before:
            raise InfrastructureError(
                f"window {link.window} was started from a model that has seen {base.rows} rows of "
                f"{source}, but the window before ended with {before.rows} (or with different "
                "ones): it is not stored; run it again to start it over"
            )
    return parent_id
