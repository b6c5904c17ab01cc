"""Stored files of older links, found and forgotten in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import Connection, Row, bindparam, delete, select

from forebay.datatasks.window_order import IN_ORDER
from forebay.executors.model_line.link import FileKind
from forebay.executors.model_line.rows.judgement_rows import is_whole
from forebay.executors.model_line.rows.line_rows import is_newest
from forebay.executors.retention.needs import needs_of
from forebay.executors.retention.oldest import IN_RANGE, older_than, passed, windows_like
from forebay.executors.retention.rule import LinkFile, WindowsKept, may_go
from forebay.home.rows import batches
from forebay.home.tables import judgements, link_files, links, windows

_OF_LINE = links.c.line_id == bindparam("line")
_TRAINED = windows_like(
    select(links.c.id).where(_OF_LINE, links.c.window_id == windows.c.id).exists()
)
_FILES = (
    select(link_files, links.c.generation, windows.c.key, windows.c.starts_at)
    .add_columns(windows.c.ends_at, is_newest().label("newest"))
    .add_columns(judgements.c.document)
    .select_from(link_files)
    .join(links, links.c.id == link_files.c.link_id)
    .join(windows, windows.c.id == links.c.window_id)
    .outerjoin(judgements, judgements.c.link_id == links.c.id)
    .where(_OF_LINE, windows.c.pipeline == bindparam("pipeline"), IN_RANGE)
    .where(link_files.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(*IN_ORDER, links.c.generation)
)
_FORGET = delete(link_files).where(link_files.c.name.in_(bindparam("names", expanding=True)))


def of_old_windows(
    connection: Connection, pipeline: str, line_id: int, kept: WindowsKept, most: int | None = None
) -> list[LinkFile]:
    """Stored files of a line's old windows, whether something needs them or not.

    What is found once stays old: only what needs it may change.

    most: how many windows of each kind are looked at, the newest of those that keep nothing; None
    for all of them.
    """
    asked: dict[str, object] = {"pipeline": pipeline, "line": line_id}
    kinds: dict[int, list[str]] = {}
    for kind in get_args(FileKind):
        kinds.setdefault(kept.of_kind(kind), []).append(kind)
    found: list[LinkFile] = []
    for count in passed(connection, pipeline, kinds):
        older = older_than(connection, _TRAINED, asked, count, most)
        if older is not None:
            values = {**asked, **older.asked(), "kinds": kinds[count]}
            found += map(_file, connection.execute(_FILES, values))
    return found


def that_may_go(
    connection: Connection, pipeline: str, line: str, line_id: int, found: Sequence[LinkFile]
) -> list[LinkFile]:
    """The files of old windows that may be removed now, the oldest first."""
    if not found:
        return []
    needs = needs_of(connection, pipeline, line, line_id, {file.link for file in found})
    return sorted(
        (file for file in found if may_go(file, needs)),
        key=lambda file: (file.order, file.generation),
    )


def forget_files(connection: Connection, files: Sequence[LinkFile]) -> None:
    """Forget these files: their bytes may be removed once the transaction is committed."""
    for names in batches(file.name for file in files):
        connection.execute(_FORGET, {"names": names})


def _file(row: Row[Any]) -> LinkFile:
    return LinkFile(
        link=row.link_id,
        kind=row.kind,
        name=row.name,
        size_bytes=row.size_bytes,
        window=row.key,
        generation=row.generation,
        order=(row.ends_at, row.starts_at),
        judged=is_whole(row.document),
        replaced=not row.newest,
    )
