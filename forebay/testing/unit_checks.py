"""What the units of a source must be: parts of a task, each of which can be left out on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from forebay.datatasks.sources.common.cautious.read_units import Poison, read_around
from forebay.datatasks.sources.common.contract.base import SourceReader
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit, TaskProgress
from forebay.testing.source_data import NUMBER

_REASON = "it kills"
_Placed = list[tuple[Position, int]]


def check_units(
    source: SourceReader,
    task: DataTask,
    read: Callable[[SourceReader, DataTask, Position | None], list[int]],
) -> None:
    """Check that units have no gaps, and that reading them separately gives the task's rows.

    The first, the middle and the last unit are read alone, the ones in between together.

    Args:
        source: the source of the task.
        task: a task with some rows.
        read: returns the numbers of a task's rows from a position on.
    """
    units = list(source.units(task, Position(0, 0)))
    assert units, "a task has at least one unit"
    assert all(unit.location for unit in units)
    assert all(one.end == other.first for one, other in pairwise(units))
    middle = len(units) // 2
    alone: list[int] = []
    for first, end in pairwise(sorted({0, 1, middle, middle + 1, len(units) - 1, len(units)})):
        alone += read(source, source.before(task, units[end - 1].end), units[first].first)
        assert list(source.units(task, units[first].first)) == units[first:]
    assert alone == read(source, task, None)


def read_around_units(
    source: SourceReader, task: DataTask, chunk_rows: int
) -> Iterator[list[Chunk]]:
    """Read the task around its first, middle and last unit, then again from positions inside it."""
    units = list(source.units(task, Position(0, 0)))
    whole = list(source.open(task, None, [NUMBER], chunk_rows))

    def around(unit: ReadUnit, progress: TaskProgress | None = None) -> list[Chunk]:
        poison = Poison(source="suite", task_id=task.task_id, unit=unit, reason=_REASON)
        found = list(read_around(source, task, progress, [NUMBER], chunk_rows, [poison]))
        at = progress.position if progress else Position(0, 0)
        left = [each for each in _placed(whole) if each[0] >= at]
        kept = [number for place, number in left if not unit.first <= place < unit.end]
        assert [number for _, number in _placed(found)] == kept
        dead = [row for chunk in found for row in chunk.dead]
        lost = int(unit.end > at) if task.rows is None else len(left) - len(kept)
        assert sum(row.rows for row in dead) == lost
        assert all(row.reason == _REASON and row.position >= at for row in dead)
        return found

    middle = units[len(units) // 2]
    yield from map(around, (units[0], units[-1], middle))
    behind = list(_progress(whole))
    inside = [each for each in behind if middle.first < each.position < middle.end]
    for progress in (behind[0], *inside[:1], behind[-1]):
        yield around(middle, progress)


def _placed(chunks: Sequence[Chunk]) -> _Placed:
    return [
        (chunk.position(row), number)
        for chunk in chunks
        for row, number in enumerate(chunk.batch.column(NUMBER).to_pylist())
    ]


def _progress(chunks: Sequence[Chunk]) -> Iterator[TaskProgress]:
    rows = 0
    for chunk in chunks:
        rows += chunk.batch.num_rows
        yield TaskProgress(position=chunk.end, rows_read=rows)
