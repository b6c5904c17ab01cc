"""Which link of a line serves, and which may: decided inside one transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.rows import line_rows
from forebay.executors.model_line.staleness import stale_reason
from forebay.home.database.tables import link_files, links, served, windows
from forebay.system.instants import to_us

_SERVED = (
    select(served, windows.c.key, windows.c.starts_at, windows.c.ends_at)
    .join(windows, windows.c.id == served.c.window_id)
    .where(served.c.line_id == bindparam("line"))
)


_MODEL = (
    select(links.c.window_id, links.c.generation)
    .add_columns(link_files.c.name, link_files.c.checksum, link_files.c.size_bytes)
    .join(link_files, link_files.c.link_id == links.c.id)
    .where(links.c.id == bindparam("link"), link_files.c.kind == "saved_model")
)


def pointer_of(connection: Connection, line: int | None) -> Row[Any] | None:
    """The row of `served`, with the `key` and the interval of its window."""
    return connection.execute(_SERVED, {"line": line}).one_or_none()


def unfit_to_serve(connection: Connection, line: int | None, link: Link) -> str:
    """Why a link may not serve; an empty text when it may.

    Publication never moves back to an earlier window, and never to a stale or replaced model.
    """
    stale = stale_reason(connection, line, link)
    if stale:
        return f"generation {link.generation} of window {link.window} is {stale}"
    newest = line_rows.newest_generation(connection, line, link.window)
    if newest is not None and newest > link.generation:
        return f"window {link.window} has been trained again, as generation {newest}"
    pointer = pointer_of(connection, line)
    place = to_us(link.end), to_us(link.start)
    if pointer is None or place >= (pointer.ends_at, pointer.starts_at):
        return ""
    serving = Parent(window=pointer.key, generation=pointer.generation)
    if line_rows.link_id(connection, line, serving) is None:
        return ""  # the line has begun anew since
    return f"window {pointer.key} is later and serves"


def serve(connection: Connection, line: int, link: Link, now: datetime) -> None:
    """Move the pointer to a link of the line.

    Raises:
        InfrastructureError: when it has no model, or is gone.
    """
    of_link = line_rows.require_id(connection, line, link.name)
    found = connection.execute(_MODEL, {"link": of_link}).mappings().one_or_none()
    if found is None:
        raise InfrastructureError(f"the model of window {link.window} is no longer kept")
    connection.execute(delete(served).where(served.c.line_id == line))
    values = {"line_id": line, "published_at": to_us(now), **found}
    connection.execute(insert(served), values)
