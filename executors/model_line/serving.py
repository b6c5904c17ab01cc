"""Which link of a line serves, and which may: decided inside one transaction."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import Action, FileKind, Link, Parent, Switch
from forebay.executors.model_line.rows import file_rows, line_rows
from forebay.executors.model_line.staleness import stale_reason
from forebay.home.database.tables import lines, link_files, links, served, switches, windows
from forebay.home.paths import DEFAULT_LINE
from forebay.home.store.base import Stored
from forebay.system.instants import from_us, now_us, to_us

_SERVED = (
    select(served, windows.c.key, windows.c.starts_at, windows.c.ends_at)
    .add_columns(lines.c.pipeline, lines.c.line)
    .join(windows, windows.c.id == served.c.window_id)
    .join(lines, lines.c.id == served.c.line_id)
    .where(served.c.line_id == bindparam("line"))
)
_MODEL = (
    select(links.c.window_id, links.c.generation)
    .add_columns(link_files.c.name, link_files.c.checksum, link_files.c.size_bytes)
    .join(link_files, link_files.c.link_id == links.c.id)
    .where(links.c.id == bindparam("link"), link_files.c.kind == "saved_model")
)
_SWITCHES = (
    select(switches, windows.c.key)
    .join(windows, windows.c.id == switches.c.window_id)
    .where(switches.c.line_id == bindparam("line"))
    .order_by(switches.c.id)
)
_MICROSECONDS = 1_000_000


def line_command(command: str, pipeline: str, line: str) -> str:
    """`forebay COMMAND PIPELINE [--line LINE]`."""
    return f"forebay {command} {pipeline}" + ("" if line == DEFAULT_LINE else f" --line {line}")


def pointer_of(connection: Connection, line: int | None) -> Row[Any] | None:
    """The row of `served`, with the names of its window and line, and the window's interval."""
    return connection.execute(_SERVED, {"line": line}).one_or_none()


_PLAIN = ("generation", "integer", "action", "who", "why")


def switches_of(connection: Connection, line: int | None) -> list[Switch]:
    """Every change of what serves, in order."""
    return [
        Switch(
            window=row.key,
            at=from_us(row.happened_at),
            **{name: getattr(row, name) for name in _PLAIN},
        )
        for row in connection.execute(_SWITCHES, {"line": line})
    ]


def served_before(history: Sequence[Switch]) -> Parent | None:
    """What served before the model that serves now; None where nothing did.

    A rollback takes away what it left: the next one goes further back, never forth to it.
    """
    stack: list[Parent] = []
    for each in history:
        if each.action == "rollback" and each.name in stack:
            while stack[-1] != each.name:
                stack.pop()
        elif each.action != "unpin" and stack[-1:] != [each.name]:
            stack.append(each.name)
    return stack[-2] if len(stack) > 1 else None


def pinned_words(window: str, pipeline: str, line: str) -> str:
    command = line_command("models unpin", pipeline, line)
    return f"window {window} is pinned and serves until `{command}`"


def unfit_to_serve(connection: Connection, line: int | None, link: Link) -> str:
    """Why a link may not serve; an empty text when it may.

    Publication never moves back to an earlier window, to a stale or replaced model, or from a pin.
    """
    stale = stale_reason(connection, line, link)
    if stale:
        return f"generation {link.generation} of window {link.window} is {stale}"
    newest = line_rows.newest_generation(connection, line, link.window)
    if newest is not None and newest > link.generation:
        return f"window {link.window} has been trained again, as generation {newest}"
    pointer = pointer_of(connection, line)
    if pointer is None or (pointer.key, pointer.generation) == (link.window, link.generation):
        return ""
    return _kept_by(connection, line, link, pointer)


def _kept_by(connection: Connection, line: int | None, link: Link, pointer: Row[Any]) -> str:
    if pointer.pinned:
        return pinned_words(pointer.key, pointer.pipeline, pointer.line)
    if (to_us(link.end), to_us(link.start)) >= (pointer.ends_at, pointer.starts_at):
        return ""
    serving = Parent(window=pointer.key, generation=pointer.generation)
    if line_rows.link_id(connection, line, serving) is None:
        return ""  # the line has begun anew since
    return f"window {pointer.key} is later and serves"


def serve(
    connection: Connection,
    line: int,
    name: Parent,
    action: Action,
    now: datetime,
    why: str = "",
    exported: Mapping[FileKind, Stored] | None = None,
) -> None:
    """Move the pointer to a link of the line; whatever people ask for is pinned.

    Nothing changes, and no new integer is given, where it is there already.

    exported: files to be recorded with the link first.

    Raises:
        InfrastructureError: when it has no model, or is gone.
    """
    of_link = line_rows.require_id(connection, line, name)
    for kind, stored in (exported or {}).items():
        file_rows.replace(connection, of_link, kind, stored)
    found = connection.execute(_MODEL, {"link": of_link}).mappings().one_or_none()
    if found is None:
        raise InfrastructureError(f"the model of window {name.window} is no longer kept")
    pointer, pinned = pointer_of(connection, line), action != "publish"
    integer = to_us(now) // _MICROSECONDS
    if pointer is not None:
        integer, pinned = max(integer, pointer.integer + 1), pinned or pointer.pinned
        if {key: getattr(pointer, key) for key in found} == dict(found):
            if pointer.pinned == pinned:
                return
            integer = pointer.integer
            now = from_us(pointer.published_at)
    connection.execute(delete(served).where(served.c.line_id == line))
    values = {"integer": integer, "pinned": pinned, "published_at": to_us(now), **found}
    connection.execute(insert(served).values(line_id=line, **values))
    _note(connection, line, action, why)


def unpin(connection: Connection, line: int, why: str) -> bool:
    """Let later windows serve again; whether there was a pin."""
    pointer = pointer_of(connection, line)
    if pointer is None or not pointer.pinned:
        return False
    connection.execute(update(served).where(served.c.line_id == line).values(pinned=False))
    _note(connection, line, "unpin", why)
    return True


def raise_integer(connection: Connection, line: int, integer: int) -> None:
    """Give the switch that serves a higher integer, where its path holds higher ones."""
    pointer = pointer_of(connection, line)
    if pointer is not None and pointer.integer < integer:
        for table in (served, switches):
            given = (table.c.line_id == line) & (table.c.integer == pointer.integer)
            connection.execute(update(table).where(given).values(integer=integer))


def _note(connection: Connection, line: int, action: Action, why: str) -> None:
    pointer = pointer_of(connection, line)
    if pointer is not None:
        values = {key: getattr(pointer, key) for key in ("window_id", "generation", "integer")}
        values |= {"action": action, "who": _who(), "why": why, "happened_at": now_us()}
        connection.execute(insert(switches).values(line_id=line, **values))


def _who() -> str:
    """User and host of this process."""
    user = "somebody"
    # A container's user may have no name.
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()}"
