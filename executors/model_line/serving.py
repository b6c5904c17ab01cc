"""Which link of a line serves, and which may: decided inside one transaction."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import (
    Action,
    FileKind,
    InnerExport,
    Link,
    Parent,
    ServedModel,
    Switch,
)
from forebay.executors.model_line.rows import export_rows, file_rows, line_rows
from forebay.executors.model_line.staleness import break_reason, stale_reason
from forebay.home.database.tables import lines, link_files, links, served, switches, windows
from forebay.home.paths import DEFAULT_LINE
from forebay.home.store.base import Stored
from forebay.system.instants import from_us, now_us, to_us
from forebay.system.names import is_one_line, shown

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
_NEWEST_MODEL = (
    select(windows.c.key, links.c.generation)
    .join(windows, windows.c.id == links.c.window_id)
    .join(link_files, link_files.c.link_id == links.c.id)
    .where(links.c.line_id == bindparam("line"), link_files.c.kind == "saved_model")
    .where(line_rows.is_newest())
    .order_by(links.c.ends_at.desc(), links.c.starts_at.desc())
    .limit(1)
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


_PLAIN = ("generation", "step", "integer", "action", "who", "why")


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


def served_before(
    history: Sequence[Switch], kept: Collection[ServedModel] = ()
) -> ServedModel | None:
    """What served before the model that serves now; None where nothing did.

    A rollback takes away what it left: the next one goes further back, never forth to it. A
    withdrawal takes away all of windows that had not ended: their steps may come once more.

    kept: of windows that had not ended; others of these are passed over.
    """
    stack: list[ServedModel] = []
    for each in history:
        if each.action == "withdraw":
            stack = [one for one in stack if not one.step]
        if each.action in ("rollback", "withdraw") and each.model in stack:
            while stack[-1] != each.model:
                stack.pop()
        elif each.action != "unpin" and stack[-1:] != [each.model]:
            stack.append(each.model)
    before = [each for each in stack[:-1] if each != stack[-1] and (not each.step or each in kept)]
    return before[-1] if before else None


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
    if pointer is None or _model(pointer) == link.model:
        return ""
    return _kept_by(connection, line, link, pointer)


def unfit_inside(
    connection: Connection, line: int, export: InnerExport, parent: Parent | None
) -> str:
    """Why the model of a window that goes on may not serve; an empty text when it may.

    It serves only in place of another, to which the line can return if the window starts over.
    """
    pointer = pointer_of(connection, line)
    if pointer is None:
        return "no window of the line serves yet"
    before = line_rows.name_before(connection, line, export)
    stale = break_reason(parent, None if before is None else before.name)
    return stale or _kept_by(connection, line, export, pointer)


def withdraw(
    connection: Connection, line: int, gone: Sequence[InnerExport], now: datetime, why: str
) -> list[str]:
    """Forget models of windows that start over, or are stale; returns names that nothing needs.

    If one of them serves, the newest link's model serves again. A pinned one stays.
    """
    pointer = pointer_of(connection, line)
    serves = None if pointer is None or pointer.pinned else _model(pointer)
    if any(each.model == serves for each in gone):
        newest = connection.execute(_NEWEST_MODEL, {"line": line}).one_or_none()
        if newest is not None:
            name = ServedModel(window=newest.key, generation=newest.generation)
            serve(connection, line, name, "withdraw", now, why)
    return export_rows.forget(connection, line, gone)


def _model(pointer: Row[Any]) -> ServedModel:
    return ServedModel(window=pointer.key, generation=pointer.generation, step=pointer.step)


def _kept_by(
    connection: Connection, line: int | None, link: Link | InnerExport, pointer: Row[Any]
) -> str:
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
    name: ServedModel,
    action: Action,
    now: datetime,
    why: str = "",
    exported: Mapping[FileKind, Stored] | None = None,
) -> None:
    """Move the pointer to a model of the line; whatever people ask for is pinned.

    Nothing changes, and no new integer is given, where it is there already.

    exported: files to be recorded with the link first.

    Raises:
        InfrastructureError: when it has no model, or is gone.
    """
    found = _found(connection, line, name, exported or {})
    if found is None:
        raise InfrastructureError(f"the model of window {name.window} is no longer kept")
    pointer, pinned = pointer_of(connection, line), action not in ("publish", "withdraw")
    integer = to_us(now) // _MICROSECONDS
    if pointer is not None:
        integer, pinned = max(integer, pointer.integer + 1), pinned or pointer.pinned
        if {key: getattr(pointer, key) for key in found} == found:
            if pointer.pinned == pinned:
                return
            integer = pointer.integer
            now = from_us(pointer.published_at)
    connection.execute(delete(served).where(served.c.line_id == line))
    values = {"integer": integer, "pinned": pinned, "published_at": to_us(now), **found}
    connection.execute(insert(served).values(line_id=line, **values))
    _note(connection, line, action, why)


def _found(
    connection: Connection, line: int, name: ServedModel, exported: Mapping[FileKind, Stored]
) -> dict[str, Any] | None:
    """The columns of `served` that say which model it is; None where it is not kept."""
    if name.step:
        return export_rows.model_of(connection, line, name)
    of_link = line_rows.require_id(connection, line, name)
    for kind, stored in exported.items():
        file_rows.replace(connection, of_link, kind, stored)
    found = connection.execute(_MODEL, {"link": of_link}).mappings().one_or_none()
    return None if found is None else {**found, "step": 0}


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
        values = {
            key: getattr(pointer, key) for key in ("window_id", "generation", "step", "integer")
        }
        values |= {"action": action, "who": _who(), "why": why, "happened_at": now_us()}
        connection.execute(insert(switches).values(line_id=line, **values))


def _who() -> str:
    """User and host of this process: one printable line, as a database takes it."""
    user = "somebody"
    # A container's user may have no name.
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    who = f"{user}@{socket.gethostname()}"
    return who if is_one_line(who) else shown(who)
