"""Which links have a final checkpoint, from which a later window can be started."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from forebay.datatasks.window_order import IN_ORDER
from forebay.executors.model_line.link import Parent
from forebay.executors.model_line.link_rows import link_id
from forebay.home.tables import links, windows


def is_kept(connection: Connection, line: int | None, name: Parent) -> bool:
    """Whether the checkpoint of a link is there."""
    rows = select(links.c.has_checkpoint).join(windows).where(links.c.line_id == line)
    rows = rows.where(windows.c.key == name.window, links.c.generation == name.generation)
    return bool(connection.scalar(rows))


def beyond(connection: Connection, line: int | None, windows_kept: int) -> list[Parent]:
    """Links whose checkpoint is there and whose window is none of the last ones."""
    trained = select(links.c.id).where(links.c.line_id == line, links.c.window_id == windows.c.id)
    kept = (
        select(windows.c.id)
        .where(trained.exists())
        .order_by(*(each.desc() for each in IN_ORDER))
        .limit(windows_kept)
    )
    rows = (
        select(windows.c.key, links.c.generation)
        .join(links)
        .where(links.c.line_id == line, links.c.has_checkpoint)
        .where(links.c.window_id.not_in(list(connection.scalars(kept))))
        .order_by(*IN_ORDER, links.c.generation)
    )
    return [Parent(window=key, generation=number) for key, number in connection.execute(rows)]


def drop(connection: Connection, line: int, names: Sequence[Parent]) -> None:
    """From now on these links have no checkpoint."""
    ids = [link_id(connection, line, name) for name in names]
    connection.execute(update(links).where(links.c.id.in_(ids)).values(has_checkpoint=False))
