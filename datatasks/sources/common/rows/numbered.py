"""Storage whose rows have numbers: ranges of them while planning, slices while reading.

Rows of one task are in the order of their numbers. A position is the index of the range, then the
number of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from forebay.datatasks.sources.common.files.bundles import Ints, RowRanges
from forebay.datatasks.sources.common.values.times import Spans, Times
from forebay.datatasks.tasks import DataTask, Position


class Slice(NamedTuple):
    """Neighbouring rows of one range of a task. `end` is the position after them."""

    part: int
    rows: Ints
    end: Position


def numbered_ranges(numbers: Ints, times: Times, spans: Spans) -> RowRanges:
    """A range for each run of rows with neighbouring numbers, one span and one hour.

    numbers: of rows of one file or table, ascending. times: of each row; those outside all spans
    are left out.
    """
    found = spans.index(times)
    inside = np.flatnonzero(found >= 0)
    span = found[inside].astype(np.int64)
    hour = spans.hours(span, times[inside]).astype(np.int64)
    rows = numbers[inside]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (np.diff(rows) != 1) | (np.diff(span) != 0) | (np.diff(hour) != 0)
    starts = np.flatnonzero(fresh)
    last = np.append(starts[1:], len(rows)) - 1 if len(starts) else starts
    first, end = rows[starts], rows[last] + 1
    zeros = np.zeros(len(starts), np.int64)
    return RowRanges(span[starts], hour[starts], zeros, first, end, end - first, zeros)


def slices(task: DataTask, position: Position | None, rows_max: int) -> Iterator[Slice]:
    """The rows of a task from a position on, at most that many at a time."""
    start = position or Position(0, 0)
    for part in range(start.part, len(task.ranges)):
        row_range = task.ranges[part]
        low = max(row_range.first, start.row) if part == start.part else row_range.first
        for first in range(low, row_range.end, rows_max):
            end = min(first + rows_max, row_range.end)
            after = Position(part + 1, 0) if end == row_range.end else Position(part, end)
            yield Slice(part, np.arange(first, end), after)
