"""What is stored of older links, found and forgotten inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, select

from forebay.config.windows import Interval, order_of
from forebay.datatasks.window_order import IN_ORDER
from forebay.executors.model_line.link_rows import is_newest
from forebay.executors.retention.needs import needs_of
from forebay.executors.retention.oldest import IN_RANGE, OlderWindows, older_than, windows_like
from forebay.executors.retention.rule import (
    CHECKPOINT,
    SAVED_MODEL,
    LinkFile,
    OldestKept,
    WindowsKept,
    may_go,
)
from forebay.home.rows import batches
from forebay.home.tables import judgements, link_files, links, windows
from forebay.system.instants import from_us

_BIG = (CHECKPOINT, SAVED_MODEL)
_OF_LINE = links.c.line_id == bindparam("line")
_TRAINED = windows_like(
    select(links.c.id).where(_OF_LINE, links.c.window_id == windows.c.id).exists()
)
_FILES = (
    select(link_files, links.c.generation, windows.c.key, windows.c.starts_at)
    .add_columns(windows.c.ends_at, is_newest().label("newest"))
    .add_columns(judgements.c.link_id.label("judged"))
    .select_from(link_files)
    .join(links, links.c.id == link_files.c.link_id)
    .join(windows, windows.c.id == links.c.window_id)
    .outerjoin(judgements, judgements.c.link_id == links.c.id)
    .where(_OF_LINE, windows.c.pipeline == bindparam("pipeline"), IN_RANGE)
    .order_by(*IN_ORDER, links.c.generation)
)
_OF_KIND = _FILES.where(link_files.c.kind == bindparam("kind"))
_OTHERS = _FILES.where(link_files.c.kind.not_in(_BIG))


class OfOldWindows(NamedTuple):
    """What is stored of windows that are old, and which ones are."""

    files: list[LinkFile]
    oldest: OldestKept


def of_old_windows(
    connection: Connection, pipeline: str, line_id: int, kept: WindowsKept, most: int | None = None
) -> OfOldWindows:
    """What is stored of a line's old windows, whether something needs it or not.

    most: windows of each kind that are looked at, the newest of those that keep nothing; None for
    all of them.
    """
    asked: dict[str, object] = {"pipeline": pipeline, "line": line_id}
    counts = (kept.checkpoints, kept.saved_models, kept.others)
    known = {
        count: older_than(connection, _TRAINED, asked, count, most) for count in sorted({*counts})
    }
    older = [known[count] for count in counts]
    oldest = OldestKept(*(None if each is None else order_of(each.before) for each in older))
    return OfOldWindows(list(_found(connection, asked, older)), oldest)


def old_files(
    connection: Connection,
    pipeline: str,
    line: str,
    line_id: int,
    kept: WindowsKept,
    most: int | None = None,
) -> list[LinkFile]:
    """What may go of a line, the oldest first. most: see `of_old_windows`."""
    found, oldest = of_old_windows(connection, pipeline, line_id, kept, most)
    if not found:
        return []
    needs = needs_of(connection, pipeline, line, line_id, {file.link for file in found})
    return sorted(
        (file for file in found if may_go(file, oldest, needs)),
        key=lambda file: (file.order, file.generation),
    )


def forget_files(connection: Connection, files: Sequence[LinkFile]) -> None:
    """Nothing names these any more: their bytes may be removed once that is stored."""
    for kind in {file.kind for file in files}:
        for ids in batches(file.link for file in files if file.kind == kind):
            mine = (link_files.c.kind == kind) & link_files.c.link_id.in_(ids)
            connection.execute(delete(link_files).where(mine))


def _found(
    connection: Connection, asked: dict[str, object], older: Sequence[OlderWindows | None]
) -> Iterator[LinkFile]:
    """What is stored of those windows, with what the rule wants to know of each."""
    for kind, meant in zip((*_BIG, None), older, strict=True):
        if meant is None:
            continue
        values = asked | meant.asked()
        if kind is None:
            rows = connection.execute(_OTHERS, values)
        else:
            rows = connection.execute(_OF_KIND, {**values, "kind": kind})
        yield from map(_file, rows)


def _file(row: Row[Any]) -> LinkFile:
    return LinkFile(
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
