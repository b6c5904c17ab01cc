"""Which link of a line serves, and which may: decided inside one transaction."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from forebay.config.windows import order_of
from forebay.executors.model_line import link_rows
from forebay.executors.model_line.link import Link, Published
from forebay.executors.model_line.staleness import stale_reason
from forebay.home.tables import links, served, windows
from forebay.system.instants import from_us, to_us

_SERVED = (
    select(served, windows.c.key, links.c.generation)
    .join(links, links.c.id == served.c.link_id)
    .join(windows, windows.c.id == links.c.window_id)
    .where(served.c.line_id == bindparam("line"))
)


def published(connection: Connection, line: int | None) -> Published | None:
    """What serves now."""
    row = connection.execute(_SERVED, {"line": line}).one_or_none()
    if row is None:
        return None
    return Published(
        window=row.key,
        generation=row.generation,
        path=row.path,
        published_at=from_us(row.published_at),
    )


def unfit_to_serve(connection: Connection, line: int | None, link: Link) -> str:
    """Why a link may not serve; an empty text when it may.

    Publication never moves back to an earlier window, and never to a stale or replaced model.
    """
    stale = stale_reason(connection, line, link)
    if stale:
        return f"generation {link.generation} of window {link.window} is {stale}"
    newest = link_rows.link_of(connection, line, link.window)
    if newest is not None and newest.generation > link.generation:
        return f"window {link.window} has been trained anew, as generation {newest.generation}"
    pointer = published(connection, line)
    if pointer is None:
        return ""
    serving = link_rows.link_of(connection, line, pointer.window)
    if serving is not None and order_of(link) < order_of(serving):
        return f"window {serving.window}, which is later, serves"
    return ""


def serve(connection: Connection, line: int, link: Link, path: str, now: datetime) -> None:
    """Move the pointer to a link of the line."""
    connection.execute(delete(served).where(served.c.line_id == line))
    connection.execute(
        insert(served).values(
            line_id=line,
            link_id=link_rows.require_id(connection, line, link.name),
            path=path,
            published_at=to_us(now),
        )
    )
