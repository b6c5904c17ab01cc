"""Storage whose rows have numbers: ranges of them while planning, slices while reading.

Rows of one task are in the order of their numbers. A position is the index of the range, then the
number of the row.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import Scan, Source
from forebay.datatasks.sources.common.files.bundles import Ints, RowRanges, to_tasks
from forebay.datatasks.sources.common.rows.chunks import (
    Locate,
    Stored,
    empty_chunk,
    joined,
    to_chunk,
)
from forebay.datatasks.sources.common.values.casting import Fitted, event_times
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import Spans, Times, hours_within
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.datatasks.tasks import Chunk, DataTask, Position
from forebay.errors import DataError
from forebay.system.instants import to_us


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


class NumberedSource(Source):
    """A table whose rows have numbers, cut by event time: a kind says which, and reads some.

    What identifies a row is the table's name and its number, which is never given anew.
    """

    @property
    @abstractmethod
    def table(self) -> str:
        """Names the table in the identity of its rows, wherever it lies."""

    @abstractmethod
    def times(self, first_us: int, end_us: int) -> tuple[Ints, Times]:
        """Number and time of each row, by number; of others than [first_us, end_us) if it likes.

        When called: by `scan`. Never called: by a reader.
        """

    @abstractmethod
    def rows(self, numbers: Ints, columns: Sequence[str]) -> Fitted:
        """The stored columns of neighbouring rows, of types that can be cast to declared ones.

        When called: by `open`, with numbers that `times` named; fewer rows are an error. Never
        called: while a window is planned.
        """

    def content(self, numbers: Ints) -> bytes:  # noqa: ARG002
        """What else tells a window's rows from others. Override it where rows may change."""
        return b""

    def scan(self, spans: Sequence[Interval]) -> Scan:
        if not spans:
            return Scan(TASK_SCHEMA.empty_table(), [], 0)
        bounds = Spans(spans)
        numbers, times = self.times(int(bounds.starts[0]), int(bounds.ends[-1]))
        span_of = bounds.index(times)
        inside = [np.flatnonzero(span_of == index) for index in range(len(spans))]
        ranges = numbered_ranges(numbers, times, bounds)
        texts = [self._fingerprint(numbers[each], times[each]) for each in inside]
        return Scan(to_tasks(ranges, pa.array([self.table])), texts, 1)

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        last = empty_chunk(columns, self.spec.columns, Position(len(task.ranges), 0))
        return joined(self._chunks(task, position, columns, chunk_rows), chunk_rows, last)

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:  # noqa: ARG002
        return {"table": self.table, "row": position.row}

    def _chunks(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        time = str(self.spec.event_time)
        wanted = list(dict.fromkeys([*columns, time]))
        for part, numbers, end in slices(task, position, chunk_rows):
            found = self.rows(numbers, wanted)
            if found.batch.num_rows != len(numbers):
                raise DataError(
                    f"source {self.spec.name!r}: rows {numbers[0]} to {numbers[-1]} of table "
                    f"{self.table!r} are not all there: some were deleted since they were planned"
                )
            times = event_times(found.batch, time)
            stored = Stored(
                batch=found.batch,
                part=part,
                rows=numbers,
                row_ids=row_ids(task.ranges[part].path, numbers),
                hours=hours_within(times, to_us(task.data_from), to_us(task.data_to)),
                end=end,
                locate=self._locate(task, part),
                bad=found.bad,
                times=times,
            )
            yield to_chunk(stored, columns, self.spec.columns, self.spec.bad_rows)

    def _locate(self, task: DataTask, part: int) -> Locate:
        return lambda row: self.location(task, Position(part, row))

    def _fingerprint(self, numbers: Ints, times: Times) -> str:
        digest = hashlib.sha256(np.stack([numbers, times]).tobytes())
        digest.update(self.content(numbers))
        return digest.hexdigest()[:32]
