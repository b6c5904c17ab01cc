"""Who asks those who follow a line's streams to stop for now."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from forebay.home.database.tables import pauses
from forebay.system.instants import now_us

# Until somebody resumes.
FOR_EVER = 2**62
BY_PEOPLE = "people"


class Pause(NamedTuple):
    asked_by: str
    why: str


def ask(connection: Connection, line: int, asked_by: str, why: str, seconds: float | None) -> None:
    """Ask, or ask again. seconds: from now on; None until it is taken back."""
    take_back(connection, line, asked_by)
    over = (pauses.c.line_id == line) & (pauses.c.until <= now_us())
    connection.execute(delete(pauses).where(over))
    until = FOR_EVER if seconds is None else now_us() + int(seconds * 1e6)
    values = {"line_id": line, "asked_by": asked_by, "why": why, "until": until}
    connection.execute(insert(pauses).values(values))


def take_back(connection: Connection, line: int, asked_by: str) -> bool:
    """Whether there was one."""
    mine = (pauses.c.line_id == line) & (pauses.c.asked_by == asked_by)
    return bool(connection.execute(delete(pauses).where(mine)).rowcount)


def heeded(connection: Connection, line: int | None) -> list[Pause]:
    of_line = select(pauses).where(pauses.c.line_id == line, pauses.c.until > now_us())
    found = connection.execute(of_line.order_by(pauses.c.until.desc(), pauses.c.asked_by))
    return [Pause(row.asked_by, row.why) for row in found]
