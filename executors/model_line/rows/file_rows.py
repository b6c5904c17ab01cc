"""Which files of a line are stored: those of each link, and a training window's newest seal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from forebay.executors.model_line.link import FileKind, StoredSeal
from forebay.home.database.tables import batches, lines, link_files, seals, windows
from forebay.home.store.base import Stored
from forebay.home.store.garbage import require_unburied
from forebay.system.instants import now_us

_STORE = insert(link_files)
_FORGET = delete(link_files).where(
    link_files.c.link_id == bindparam("link"), link_files.c.kind == bindparam("of_kind")
)
_STORE_SEAL = insert(seals)
_FORGET_SEAL = (
    delete(seals)
    .where(seals.c.line_id == bindparam("line"), seals.c.window_id == bindparam("window"))
    .returning(seals.c.name)
)
_SEALS = (
    select(seals, lines.c.pipeline, lines.c.line, windows.c.key)
    .join(lines, lines.c.id == seals.c.line_id)
    .join(windows, windows.c.id == seals.c.window_id)
    .order_by(lines.c.pipeline, lines.c.line, windows.c.ends_at, windows.c.starts_at)
)
_SEAL = _SEALS.where(
    seals.c.line_id == bindparam("line_id"),
    seals.c.generation == bindparam("of_generation"),
    windows.c.key == bindparam("window"),
)
_OF_LINKS = select(link_files).where(link_files.c.link_id.in_(bindparam("ids", expanding=True)))


def store(connection: Connection, link: int, files: Mapping[FileKind, Stored]) -> None:
    """Record the stored files of a new link.

    Raises:
        InfrastructureError: when some of them were already collected as garbage.
    """
    if files:
        require_unburied(connection, [each.name for each in files.values()])
        rows = [
            {"link_id": link, "kind": kind, **each.model_dump()} for kind, each in files.items()
        ]
        connection.execute(_STORE, rows)


def replace(connection: Connection, link: int, kind: FileKind, stored: Stored) -> None:
    """Record a stored file of a link, in place of the one before. Raises as `store`."""
    connection.execute(_FORGET, {"link": link, "of_kind": kind})
    store(connection, link, {kind: stored})


def files_of(
    connection: Connection, links_wanted: Iterable[int]
) -> dict[int, dict[FileKind, Stored]]:
    """The stored files of each of these links; links without any are left out."""
    found: dict[int, dict[FileKind, Stored]] = {}
    for ids in batches(links_wanted):
        for row in connection.execute(_OF_LINKS, {"ids": ids}):
            found.setdefault(row.link_id, {})[row.kind] = stored_in(row)
    return found


def stored_in(row: Row[Any]) -> Stored:
    """The file that a row with the columns of `link_files` names."""
    return Stored(name=row.name, checksum=row.checksum, size_bytes=row.size_bytes)


def store_seal(connection: Connection, line: int, of_window: int, seal: StoredSeal) -> list[str]:
    """Record the newest seal of a window; returns names that nothing refers to any more.

    Raises:
        InfrastructureError: when it was already collected as garbage.
    """
    require_unburied(connection, [seal.stored.name])
    replaced = forget_seal(connection, line, of_window)
    values = {
        "line_id": line,
        "window_id": of_window,
        "generation": seal.generation,
        "step": seal.step,
        "model_fingerprint": seal.model_fingerprint,
        "stored_at": now_us(),
        **seal.stored.model_dump(),
    }
    connection.execute(_STORE_SEAL, values)
    return replaced


def forget_seal(connection: Connection, line: int, of_window: int) -> list[str]:
    """Forget the seals of a window, of any generation; returns their names."""
    return list(connection.scalars(_FORGET_SEAL, {"line": line, "window": of_window}))


def seal_of(
    connection: Connection, line: int | None, window: str, generation: int
) -> StoredSeal | None:
    """The newest seal of a window in training; None where none of this generation is stored."""
    asked = {"line_id": line, "window": window, "of_generation": generation}
    row = connection.execute(_SEAL, asked).one_or_none()
    if row is None:
        return None
    return StoredSeal(
        window=window,
        generation=generation,
        step=row.step,
        model_fingerprint=row.model_fingerprint,
        stored=stored_in(row),
    )


def all_seals(connection: Connection) -> list[Row[Any]]:
    """The rows of all seals in order, with `pipeline`, `line` and the window's `key`."""
    return list(connection.execute(_SEALS).all())
