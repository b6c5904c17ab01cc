"""Parts of a task that are read alone or not at all, and reading around those that kill a reader.

What such a part is, only its kind knows: a message, a row group, a segment. A row of a unit that
was served before the unit killed a reader stays served: only what is left of the unit is dead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forebay.datatasks.sources.common.rows.chunks import empty_chunk
from forebay.datatasks.sources.common.rows.offset_runs import RECORDS, Run, as_runs
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, ReadUnit, TaskProgress
from forebay.system.message import Message

if TYPE_CHECKING:
    from forebay.datatasks.sources.common.contract.base import SourceReader


class Poison(Message):
    """A unit that ended the process which read it, and how."""

    source: str
    task_id: str
    unit: ReadUnit
    reason: str


def whole_ranges(task: DataTask, position: Position) -> Iterator[ReadUnit]:
    """Each row range as one unit, without a look at the storage, which may kill whoever looks."""
    return ReadUnit.of_ranges(
        task, position, lambda at: {"file": task.ranges[at.part].path, "row": at.row}
    )


def read_around(
    source: SourceReader,
    task: DataTask,
    progress: TaskProgress | None,
    columns: Sequence[str],
    chunk_rows: int,
    poisons: Sequence[Poison],
) -> Iterator[Chunk]:
    """Chunks of a task as `open` gives them; each poison is a dead row in its place."""
    at = progress.position if progress else None
    counted = progress.rows_read if progress else 0
    for poison in sorted(poisons, key=lambda each: each.unit.first):
        unit = poison.unit
        if at is not None and unit.end <= at:
            continue
        if at is None or at < unit.first:
            before = source.before(task, unit.first)
            for chunk in source.open(before, at, columns, chunk_rows):
                counted += len(chunk.parts) + sum(row.rows for row in chunk.dead)
                # A reader takes the end of what it was given for the end of a range.
                yield replace(chunk, end=min(chunk.end, unit.first))
        dead = _dead_row(task, poison, unit.first if at is None else max(at, unit.first), counted)
        of_unit = (dead,) if dead.rows > 0 else ()
        found = empty_chunk(columns, source.spec.columns, unit.end, of_unit)
        if task.rows is None:
            lost = Run(dead.position.part, unit.end.part, RECORDS)
            found = replace(found, runs=as_runs([lost]))
        yield found
        counted += dead.rows
        at = unit.end
    yield from source.open(task, at, columns, chunk_rows)


def _dead_row(task: DataTask, poison: Poison, start: Position, counted: int) -> DeadRow:
    """What is left of a poison from `start` on, where that many rows are counted before it."""
    unit = poison.unit
    location = dict(unit.location)
    if task.rows is None:
        rows = 1  # nobody can tell how many there are
    elif unit.end.row:
        rows = unit.end.row - max(start.row, task.ranges[unit.end.part].first)
    else:
        rows = sum(each.rows or 0 for each in task.ranges[: unit.end.part]) - counted
    if start > unit.first:
        location["row"] = start.row  # the rows before it were read
    return DeadRow(position=start, location=location, reason=poison.reason, rows=rows)
