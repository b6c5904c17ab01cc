"""What of a link is in the store, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from forebay.executors.model_line.link import FileKind
from forebay.home.garbage import require_unburied
from forebay.home.rows import batches
from forebay.home.store import Stored
from forebay.home.tables import link_files, links

_STORE = insert(link_files)
_FORGET = delete(link_files).where(
    link_files.c.link_id == bindparam("link"), link_files.c.kind == bindparam("of_kind")
)
_OF_LINKS = select(link_files).where(link_files.c.link_id.in_(bindparam("ids", expanding=True)))


def store(connection: Connection, link: int, files: Mapping[FileKind, Stored]) -> None:
    """Name what is stored of a new link.

    Raises:
        InfrastructureError: when some of it was collected as garbage before.
    """
    if files:
        require_unburied(connection, [each.name for each in files.values()])
        rows = [
            {"link_id": link, "kind": kind, **each.model_dump()} for kind, each in files.items()
        ]
        connection.execute(_STORE, rows)


def replace(connection: Connection, link: int, kind: FileKind, stored: Stored) -> None:
    """Name what is stored of a link; what was named before is forgotten. Raises as `store`."""
    connection.execute(_FORGET, {"link": link, "of_kind": kind})
    store(connection, link, {kind: stored})


def files_of(
    connection: Connection, links_wanted: Iterable[int]
) -> dict[int, dict[FileKind, Stored]]:
    """What is stored of each of these links; those without anything are left out."""
    found: dict[int, dict[FileKind, Stored]] = {}
    for ids in batches(links_wanted):
        for row in connection.execute(_OF_LINKS, {"ids": ids}):
            found.setdefault(row.link_id, {})[row.kind] = stored_in(row)
    return found


def stored_in(row: Row[Any]) -> Stored:
    """What a row with the columns of `link_files` names."""
    return Stored(name=row.name, checksum=row.checksum, size_bytes=row.size_bytes)


def with_checkpoint(connection: Connection, line: int | None) -> set[int]:
    """Links of a line whose checkpoint is there."""
    rows = select(links.c.id).join(link_files, link_files.c.link_id == links.c.id)
    return set(
        connection.scalars(rows.where(links.c.line_id == line, link_files.c.kind == "checkpoint"))
    )
