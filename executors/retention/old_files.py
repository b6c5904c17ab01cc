"""What is stored of older links, found and forgotten inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, or_, select

from forebay.config.windows import Interval, order_of
from forebay.datatasks.window_order import IN_ORDER, comes_before
from forebay.executors.model_line.link_rows import is_newest, is_of
from forebay.executors.retention.needs import needs_of
from forebay.executors.retention.oldest import oldest_of
from forebay.executors.retention.rule import (
    CHECKPOINT,
    SAVED_MODEL,
    LinkFile,
    OldestKept,
    Order,
    WindowsKept,
    may_go,
)
from forebay.home.rows import batches
from forebay.home.tables import judgements, link_files, links, windows
from forebay.system.instants import from_us

_BIG = (CHECKPOINT, SAVED_MODEL)


def old_files(
    connection: Connection, pipeline: str, line: str, line_id: int, kept: WindowsKept
) -> list[LinkFile]:
    """What may go of a line, the oldest first."""
    trained = select(links.c.id).where(is_of(line_id), links.c.window_id == windows.c.id).exists()
    oldest = OldestKept(
        *(_order(oldest_of(connection, pipeline, trained, count)) for count in _counts(kept))
    )
    if not any(oldest):
        return []
    found = _files_before(connection, pipeline, line_id, oldest)
    if not found:
        return []
    needs = needs_of(connection, pipeline, line, line_id)
    return [file for file in found if may_go(file, oldest, needs)]


def forget_files(connection: Connection, files: Sequence[LinkFile]) -> None:
    """Nothing names these any more: their bytes may be removed once that is stored."""
    for kind in {file.kind for file in files}:
        for ids in batches(file.link for file in files if file.kind == kind):
            mine = (link_files.c.kind == kind) & link_files.c.link_id.in_(ids)
            connection.execute(delete(link_files).where(mine))


def _counts(kept: WindowsKept) -> tuple[int, int, int]:
    return kept.checkpoints, kept.saved_models, kept.others


def _files_before(
    connection: Connection, pipeline: str, line_id: int, oldest: OldestKept
) -> list[LinkFile]:
    """What is stored of windows before those, with what the rule wants to know of each."""
    old: list[ColumnElement[bool]] = []
    for kind, order in zip((*_BIG, None), oldest, strict=True):
        if order is not None:
            of_kind = link_files.c.kind.not_in(_BIG) if kind is None else link_files.c.kind == kind
            old.append(of_kind & comes_before(Interval(start=order[1], end=order[0])))
    rows = _files(line_id).where(windows.c.pipeline == pipeline, or_(*old))
    return [
        LinkFile(
            link=row.link_id,
            kind=row.kind,
            name=row.name,
            size_bytes=row.size_bytes,
            window=row.key,
            generation=row.generation,
            order=order_of(Interval(from_us(row.starts_at), from_us(row.ends_at))),
            judged=row.judged is not None,
            replaced=not row.newest,
        )
        for row in connection.execute(rows.order_by(*IN_ORDER, links.c.generation))
    ]


def _files(line_id: int) -> Select[Any]:
    return (
        select(link_files, links.c.generation, windows.c.key, windows.c.starts_at)
        .add_columns(windows.c.ends_at, is_newest().label("newest"))
        .add_columns(judgements.c.link_id.label("judged"))
        .select_from(link_files)
        .join(links, links.c.id == link_files.c.link_id)
        .join(windows, windows.c.id == links.c.window_id)
        .outerjoin(judgements, judgements.c.link_id == links.c.id)
        .where(is_of(line_id))
    )


def _order(oldest: Interval | None) -> Order | None:
    return None if oldest is None else order_of(oldest)
