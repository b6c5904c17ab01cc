"""Reading tasks: each file from its beginning, as far as the task needs it.

To begin in the middle of a file costs as much as to decompress and cut what comes before; none of
that is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.files.listing import read_failure
from forebay.datatasks.sources.common.files.versions import PlannedFile
from forebay.datatasks.sources.common.rows.chunks import (
    Ints,
    Stored,
    empty_chunk,
    joined,
    place_text,
    stored_rows,
    to_chunk,
    without_columns,
)
from forebay.datatasks.sources.common.values.casting import Fitted
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import UNKNOWN, hours_within, times_of
from forebay.datatasks.sources.records.blocks import Block, Records
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, RowRange
from forebay.errors import DataError, InfrastructureError
from forebay.system.instants import to_us

Bounds = tuple[int, int]


@dataclass
class RecordFile:
    """An open file of records.

    blocks: all of it. event_time: the column that says when records happened, where it is read.
    bounds: the times [low, high) in microseconds that its path names, where it names some.
    find_time: looks for the first time of the file; None where it has none.
    """

    records: Records
    blocks: Iterator[Block]
    event_time: str | None
    bounds: Bounds | None
    find_time: Callable[[], int | None]

    @cached_property
    def _without_time(self) -> int:
        found = self.bounds[0] if self.bounds else self.find_time()
        return UNKNOWN if found is None else found

    @cached_property
    def _timer(self) -> Records:
        return self.records.of([str(self.event_time)])

    def times(self, block: Block, fitted: Fitted | None = None) -> Ints:
        """Of all records of a block; UNKNOWN where there is none.

        fitted: the block, decoded. What else is wrong with a record must not decide when it was.
        """
        if fitted is None or fitted.bad:
            fitted = self._timer.decode_all(block)
        return times_of(fitted.batch.column(self.event_time))

    def cut_times(self, times: Ints) -> Ints:
        """The time by which each record is cut.

        One without a time goes with the first one of its file that has one, or with the beginning
        of what the path names, which bounds all others too.
        """
        unknown = times == UNKNOWN
        if unknown.any():
            times = np.where(unknown, self._without_time, times)
        return times if self.bounds is None else np.clip(times, self.bounds[0], self.bounds[1] - 1)


class Opened(Protocol):
    """Opens a path for some columns, and for the event time where that is wanted."""

    def __call__(
        self, path: str, columns: Sequence[str], *, with_times: bool
    ) -> AbstractContextManager[RecordFile]: ...


def shifts(file: RecordFile) -> tuple[Ints, Ints]:
    """By how much the place of a record is more than its row, and from which rows on."""
    rows, found = [np.zeros(1, np.int64)], [np.ones(1, np.int64)]
    for block in file.blocks:
        values, at = np.unique(block.places - np.arange(block.first, block.end), return_index=True)
        rows.append(block.first + at)
        found.append(values)
    return np.concatenate(rows), np.concatenate(found)


class RecordReader:
    """planned: the file of a row range as it was planned, in a task of a window.

    no_times: says of a path why nobody knows when any of its records happened.
    """

    def __init__(
        self,
        spec: SourceSpec,
        opened: Opened,
        planned: Callable[[RowRange, str], PlannedFile],
        no_times: Callable[[str], str],
    ) -> None:
        self.spec = spec
        self.opened = opened
        self.planned = planned
        self.no_times = no_times

    def read(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        start = position or Position(0, 0)
        last = empty_chunk(columns, self.spec.columns, Position(len(task.ranges), 0))
        return joined(self._chunks(task, start, columns, chunk_rows), chunk_rows, last)

    def _chunks(
        self, task: DataTask, start: Position, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        for index in range(start.part, len(task.ranges)):
            first = start.row if index == start.part else 0
            yield from _RangeReader(self, task, index, columns, chunk_rows).chunks(first)


class _RangeReader:
    def __init__(
        self,
        reader: RecordReader,
        task: DataTask,
        index: int,
        columns: Sequence[str],
        chunk_rows: int,
    ) -> None:
        self.spec, self.opened, self.index = reader.spec, reader.opened, index
        self.no_times = reader.no_times
        self.row_range = row_range = task.ranges[index]
        self.planned = reader.planned(row_range, task.window)
        self.columns, self.step = list(columns), stored_rows(chunk_rows)
        self.span = (to_us(task.data_from), to_us(task.data_to))

    def chunks(self, start: int) -> Iterator[Chunk]:
        first, end = max(start, self.row_range.first), self.row_range.end
        # An empty range with rows stands for a file of which nobody knows when its rows happened.
        is_lost = end == self.row_range.first and bool(self.row_range.rows)
        if first >= end and not is_lost:
            return
        self.planned.require_unchanged()
        try:
            why = self.no_times(self.row_range.path) if is_lost else ""
            for chunk in [self._dead(first, why)] if is_lost else self._read(first, end):
                if chunk.dead or chunk.end.part > self.index:
                    self.planned.require_unchanged()
                yield chunk
        except OSError as error:
            place = self.planned.place
            raise read_failure(error, place) or InfrastructureError(f"{place}: {error}") from error

    def _read(self, first: int, end: int) -> Iterator[Chunk]:
        at, place = 0, 1
        with self.opened(self.row_range.path, self.columns, with_times=True) as file:
            for block in file.blocks:
                if block.is_rest and block.end < end:  # it was whole when it was planned
                    yield self._dead(max(first, at), block.bad[0])
                    return
                at, place = block.end, int(block.places[-1]) + 1
                low, high = max(first - block.first, 0), min(end, at) - block.first
                # What kills is looked for within two chunks: no more is decoded at a time.
                for row in range(low, high, self.step):
                    yield self._chunk(file, block.part(row, min(row + self.step, high)))
                if at >= end:
                    return
        yield self._dead(max(first, at), f"the file ends before {file.records.place} {place}")

    def _chunk(self, file: RecordFile, block: Block) -> Chunk:
        fitted = file.records.decode_all(block)
        batch, bad = fitted.batch, dict(fitted.bad)
        rows = np.arange(block.first, block.end)
        times = None if file.event_time is None else file.times(block, fitted)
        kept: npt.NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        if times is None:
            cut_times = np.full(len(rows), self.span[0] if file.bounds is None else file.bounds[0])
        else:
            cut_times = file.cut_times(times)
            kept = (cut_times >= self.span[0]) & (cut_times < self.span[1])
            if file.bounds is None:
                reason = f"no time in column {file.event_time!r} (event_time)"
                unknown = np.flatnonzero(times == UNKNOWN).tolist()
                bad = dict.fromkeys(unknown, reason) | bad
        batch = batch.select(self.columns) if self.columns else without_columns(len(rows))
        if not kept.all():
            chosen = np.flatnonzero(kept)
            new = {row: number for number, row in enumerate(chosen.tolist())}
            bad = {new[row]: why for row, why in bad.items() if row in new}
            rows, cut_times = rows[chosen], cut_times[chosen]
            times = None if times is None else times[chosen]
            batch = batch.take(pa.array(chosen)) if self.columns else without_columns(len(rows))
        path, places, word = self.row_range.path, block.places, file.records.place

        def locate(row: int) -> dict[str, str | int]:
            return {"file": path, word: int(places[row - block.first]), "row": row}

        stored = Stored(
            batch=batch,
            part=self.index,
            rows=rows,
            row_ids=row_ids(path, rows),
            hours=hours_within(cut_times, *self.span),
            end=self._position(block.end),
            locate=locate,
            bad=bad,
            times=None if times is None else np.where(times == UNKNOWN, cut_times, times),
            text=None if word == "record" else lambda row: block.beginning(row - block.first),
        )
        return to_chunk(stored, self.columns, self.spec.columns, self.spec.bad_rows)

    def _dead(self, first: int, reason: str) -> Chunk:
        """What is left of the range from a record on, as one dead row."""
        self.planned.require_unchanged()
        rows, count = self.row_range.rows or 0, self.row_range.end - self.row_range.first
        if first > self.row_range.first:
            if rows != count:
                raise DataError(f"{self.planned.place} became unreadable after it was planned")
            rows = self.row_range.end - first
        location: dict[str, str | int] = {"file": self.row_range.path, "row": first}
        if self.spec.bad_rows == "fail":
            raise DataError(f"{place_text(location)}: {reason}")
        place = Position(self.index, first)
        dead = DeadRow(position=place, location=location, reason=reason, rows=rows)
        return empty_chunk(self.columns, self.spec.columns, Position(self.index + 1, 0), (dead,))

    def _position(self, row: int) -> Position:
        inside = row < self.row_range.end
        return Position(self.index, row) if inside else Position(self.index + 1, 0)
