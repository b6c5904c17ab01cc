"""Judgements of links: the newest one of each."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from forebay.executors.model_line.link import Parent
from forebay.executors.model_line.link_rows import link_id, require_id
from forebay.home.tables import judgements
from forebay.system.instants import now_us


def store(connection: Connection, line: int, name: Parent, document: str) -> None:
    """Keep a judgement in place of the one before."""
    of_link = require_id(connection, line, name)
    connection.execute(delete(judgements).where(judgements.c.link_id == of_link))
    connection.execute(
        insert(judgements).values(link_id=of_link, judged_at=now_us(), document=document)
    )


def document(connection: Connection, line: int | None, name: Parent) -> str | None:
    """The judgement of a link; None where there is none."""
    of_link = link_id(connection, line, name)
    return connection.scalar(select(judgements.c.document).where(judgements.c.link_id == of_link))
