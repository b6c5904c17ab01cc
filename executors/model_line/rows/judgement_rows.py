"""Judgements of links: the newest one of each."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, delete, insert, select

from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.rows.line_rows import (
    BEFORE,
    EVER,
    LATEST_FIRST,
    OF_LINE,
    OF_WINDOWS,
    is_newest,
    require_id,
)
from forebay.home.database.tables import batches, judgements, links, windows
from forebay.system.instants import now_us

_FORGET = delete(judgements).where(judgements.c.link_id == bindparam("link"))
_STORE = insert(judgements)
_OF_WINDOWS = (
    select(windows.c.key, links.c.generation, judgements.c.document)
    .select_from(links)
    .join(windows, windows.c.id == links.c.window_id)
    .join(judgements, judgements.c.link_id == links.c.id)
    .where(OF_LINE, OF_WINDOWS)
)
_LAST = (
    select(windows.c.key, judgements.c.document)
    .select_from(links)
    .join(windows, windows.c.id == links.c.window_id)
    .outerjoin(judgements, judgements.c.link_id == links.c.id)
    .where(OF_LINE, BEFORE, is_newest())
    .order_by(*LATEST_FIRST)
    .limit(bindparam("count"))
)


def store(connection: Connection, line: int, name: Parent, document: str) -> None:
    of_link = require_id(connection, line, name)
    connection.execute(_FORGET, {"link": of_link})
    connection.execute(_STORE, {"link_id": of_link, "judged_at": now_us(), "document": document})


def is_whole(document: str | None) -> bool:
    """Whether there is a judgement that waits for no label."""
    if document is None:
        return False
    return not _read(document).is_partial


def _read(document: str) -> Judgement:
    return Judgement.of_document(document, "a judgement")


def documents(
    connection: Connection, line: int | None, of: Iterable[Link | Parent]
) -> dict[str, Judgement]:
    """The judgements of links, one of each window, by window; those without one are left out."""
    generations = {link.window: link.generation for link in of}
    found: dict[str, Judgement] = {}
    for keys in batches(generations):
        for row in connection.execute(_OF_WINDOWS, {"line": line, "windows": keys}):
            if generations[row.key] == row.generation:
                found[row.key] = _read(row.document)
    return found


def last_documents(connection: Connection, line: int | None, count: int) -> dict[str, Judgement]:
    """The judgements of the newest links of the last windows, by window, in order.

    count: of windows, including those that are not judged.
    """
    asked = {"line": line, "count": count, "end": EVER, "start": EVER}
    rows = connection.execute(_LAST, asked).all()
    return {row.key: _read(row.document) for row in reversed(rows) if row.document is not None}
