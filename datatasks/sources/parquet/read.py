"""Reading Parquet tasks: row groups one after another, resumable at any row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.datatasks.sources.common.files.listing import READ_ERRORS, read_failure
from forebay.datatasks.sources.common.files.versions import PlannedFile
from forebay.datatasks.sources.common.rows.chunks import (
    Ints,
    Stored,
    bad_texts,
    empty_chunk,
    joined,
    place_text,
    stored_rows,
    to_chunk,
    waits_for_more,
)
from forebay.datatasks.sources.common.values.casting import column_problem, fit, unlike_declared
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import UNKNOWN, hours_within, misplaced, times_of
from forebay.datatasks.sources.parquet.footers import group_times
from forebay.datatasks.sources.parquet.open_files import FileKeeper, LastFile, OpenFile
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, RowRange
from forebay.errors import DataError
from forebay.system.instants import to_us

Bounds = tuple[int, int]
LOST = "its rows could not be read, or had no time, when the window was planned"


@dataclass(frozen=True)
class _Run:
    """Row groups read in one go: rows [first, end) of the file, of which [start, stop) count.

    end: of its row groups. step: into how many rows they divide best.
    mask: for one row group of a row range that is cut: which of its rows count.
    """

    groups: tuple[int, ...]
    first: int
    start: int
    stop: int
    end: int
    step: int
    mask: npt.NDArray[np.bool_] | None = None


class _UnreadableError(Exception):
    """Rows from row `at` of the file on cannot be decoded."""

    def __init__(self, at: int, cause: Exception) -> None:
        super().__init__(str(cause))
        self.at = at
        self.cause = cause


class ParquetReader:
    """keeper: opens the paths of row ranges.

    planned: the file of a row range as it was planned, in a task of a window.
    bounds: the span in microseconds that a path names, or None where paths are mute.
    """

    def __init__(
        self,
        spec: SourceSpec,
        keeper: FileKeeper,
        planned: Callable[[RowRange, str], PlannedFile],
        bounds: Callable[[str], Bounds | None] = lambda _path: None,
    ) -> None:
        self.spec = spec
        self._keeper = keeper
        self.planned = planned
        self.bounds = bounds

    def read(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        start = position or Position(0, 0)
        last = empty_chunk(columns, self.spec.columns, Position(len(task.ranges), 0))
        return joined(self._chunks(task, start, columns, chunk_rows), chunk_rows, last)

    def _chunks(
        self, task: DataTask, start: Position, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        batch_rows = _BatchRows(chunk_rows)
        with self._keeper.lent() as files:
            for index in range(start.part, len(task.ranges)):
                yield from _RangeReader(
                    self, files, task, index, columns, chunk_rows, batch_rows
                ).chunks(start)


def _step(group_rows: int, chunk_rows: int) -> int:
    """Rows of a batch that holds as many whole row groups as it can, or an equal part of one."""
    if group_rows <= chunk_rows:
        return chunk_rows // group_rows * group_rows
    return -(-group_rows // -(-group_rows // chunk_rows))


class _BatchRows:
    """How many rows to decode at a time, so that none that were decoded wait for others.

    As many as a chunk may have; fewer where a few rows may wait in `joined` already, which have to
    fit into a chunk with them.
    """

    def __init__(self, chunk_rows: int) -> None:
        self._chunk_rows = chunk_rows
        self._may_wait = False

    @contextmanager
    def of(self, run: _Run) -> Iterator[int]:
        """The rows of each batch of a run, which is read inside the block."""
        rows = run.end - run.first
        batch_rows = stored_rows(self._chunk_rows)
        is_whole = run.mask is None and (run.start, run.stop) == (run.first, run.end)
        if is_whole and not self._may_wait:
            batch_rows = run.step
        self._may_wait = True
        yield batch_rows
        last = rows - (rows - 1) // batch_rows * batch_rows
        self._may_wait = not is_whole or waits_for_more(last, self._chunk_rows)


class _RangeReader:
    def __init__(
        self,
        reader: ParquetReader,
        files: LastFile,
        task: DataTask,
        index: int,
        columns: Sequence[str],
        chunk_rows: int,
        batch_rows: _BatchRows,
    ) -> None:
        self.files = files
        self.batch_rows = batch_rows
        self.spec = reader.spec
        self.index = index
        self.row_range = row_range = task.ranges[index]
        self.columns = list(columns)
        self.chunk_rows = chunk_rows
        self.span = (to_us(task.data_from), to_us(task.data_to))
        self.bounds = reader.bounds(row_range.path)
        self.planned = reader.planned(row_range, task.window)
        self.path_time = self.bounds[0] if self.bounds else self.span[0]
        # An empty range with rows stands for a file that could not be read when it was planned.
        self.lost = row_range.end == row_range.first and bool(row_range.rows)
        self.cut = not self.lost and row_range.rows != row_range.end - row_range.first

    def chunks(self, position: Position) -> Iterator[Chunk]:
        first = self.row_range.first
        start = max(first, position.row) if self.index == position.part else first
        if start >= self.row_range.end and not self.lost:
            return
        for chunk in self._read(start):
            if chunk.end.part > self.index:  # whoever has this reads nothing of the file again
                self.planned.require_unchanged()
            yield chunk

    def _read(self, start: int) -> Iterator[Chunk]:
        self.planned.require_unchanged()
        try:
            file = self.files.open(self.row_range.path, self.row_range.version)
        except READ_ERRORS as error:
            yield self._dead(error, start, self.row_range.end, self._rest(start), {})
            return
        if self.lost:
            reason = pa.ArrowInvalid(LOST)
            yield self._dead(reason, start, self.row_range.end, self.row_range.rows or 0, {})
            return
        self.planned.require_footer(file.digest)
        self._check(file)
        for groups, low, high in self._runs(file, start):
            yield from self._run(file, groups, low, max(low, start), high)

    def _check(self, file: OpenFile) -> None:
        schema, place = file.file.schema_arrow, self.planned.place
        wanted = {name: self.spec.columns[name] for name in self.columns}
        if self.spec.event_time is not None:
            wanted.setdefault(self.spec.event_time, ColumnType.TIMESTAMP)
        for name, declared in unlike_declared(schema, wanted).items():
            problem = column_problem(schema, name, declared)
            if problem:
                raise DataError(
                    f"{place}: {problem} (rewrite the file, or correct source {self.spec.name!r})"
                )
        if file.num_rows < self.row_range.end:
            raise DataError(
                f"{place} has {file.num_rows} rows, but had at least {self.row_range.end} "
                "when it was planned: plan the window again"
            )

    def _runs(self, file: OpenFile, start: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """(row groups, first row, end row) to read in one go.

        Small neighbours together, and those that batches of one size divide without a rest: a
        reader for each of them would cost as much as many rows, where there are many columns.
        """
        waiting: list[int] = []
        first = end = 0
        part = 1
        for group, low, high in file.groups(start, self.row_range.end):
            is_near = high - first <= self.chunk_rows or (low - first) % part == 0
            if waiting and (self.cut or high == low or not is_near):
                yield tuple(waiting), first, end
                waiting = []
            if high > low:
                if not waiting:
                    first, part = low, min(high - low, _step(high - low, self.chunk_rows))
                end = high
                waiting.append(group)
        if waiting:
            yield tuple(waiting), first, end

    def _run(
        self, file: OpenFile, groups: tuple[int, ...], first: int, start: int, end: int
    ) -> Iterator[Chunk]:
        stop = min(end, self.row_range.end)
        step = _step(int(file.ends[groups[0]]) - first, self.chunk_rows)
        if end - first <= self.chunk_rows:
            step = end - first
        run = _Run(groups, first, start, stop, end, step)
        if self.cut:
            try:
                run = self._masked(file, run)
            except READ_ERRORS as error:
                yield self._dead(error, start, stop, self._rest(start), {"row_group": groups[0]})
                return
        try:
            with self.batch_rows.of(run) as batch_rows:
                yield from self._chunks(file, run, batch_rows)
        except _UnreadableError as error:
            at = error.at
            if len(groups) == 1:
                count = stop - at
                if run.mask is not None:
                    count = int(run.mask[at - first : stop - first].sum())
                yield self._dead(error.cause, at, stop, count, {"row_group": groups[0]})
                return
            for group, low, high in file.groups(at, end):
                yield from self._run(file, (group,), low, max(low, at), high)

    def _masked(self, file: OpenFile, run: _Run) -> _Run:
        name, group = str(self.spec.event_time), run.groups[0]
        bounds = self.bounds
        if bounds is None and self.row_range.version:  # planning saw it, in a child that may die
            bounds = file.bounds_of(group, name)
        times = group_times(file.file, group, name, bounds)
        return replace(run, mask=(times >= self.span[0]) & (times < self.span[1]))

    def _chunks(self, file: OpenFile, run: _Run, batch_rows: int) -> Iterator[Chunk]:
        at = run.first
        for batch in self._batches(file.file, run, batch_rows):
            low, high = max(at, run.start), min(at + batch.num_rows, run.stop)
            if low < high:
                part = batch.slice(low - at, high - low)
                stored = self._stored(part, low, high, run, file)
                yield to_chunk(stored, self.columns, self.spec.columns, self.spec.bad_rows)
            at += batch.num_rows
            if at >= run.stop:
                return
        missing = pa.ArrowInvalid("its row groups hold fewer rows than its footer says")
        raise _UnreadableError(max(at, run.start), missing)

    def _batches(
        self, file: pq.ParquetFile, run: _Run, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.columns)
        if self.spec.event_time is not None and self.spec.event_time not in names:
            names.append(self.spec.event_time)
        at = run.first
        try:
            for batch in file.iter_batches(
                batch_rows, row_groups=list(run.groups), columns=names, use_threads=False
            ):
                yield batch
                at += batch.num_rows
        except READ_ERRORS as error:
            raise _UnreadableError(max(at, run.start), error) from error

    def _stored(
        self, batch: pa.RecordBatch, low: int, high: int, run: _Run, file: OpenFile
    ) -> Stored:
        rows, path = np.arange(low, high), self.row_range.path
        if run.mask is not None:
            chosen = np.flatnonzero(run.mask[low - run.first : high - run.first])
            if len(chosen) < len(rows):
                batch, rows = batch.take(pa.array(chosen)), rows[chosen]
        times, bad = self._times(batch)
        return Stored(
            batch=batch,
            part=self.index,
            rows=rows,
            row_ids=row_ids(path, rows),
            hours=hours_within(times, *self.span),
            end=self._position(high),
            locate=lambda row: {"file": path, "row_group": file.group_of(row), "row": row},
            bad={**bad_texts(batch, self.columns, self.spec.columns), **bad},
            # Statistics may be wrong; where paths name the time, they hold before it.
            outside=misplaced(times, *self.span) if self.bounds is None else None,
            times=None if self.spec.event_time is None else times,
        )

    def _times(self, batch: pa.RecordBatch) -> tuple[Ints, Mapping[int, str]]:
        """Event times for the hours, and the rows that have none where time cuts rows."""
        name = self.spec.event_time
        if name is None:
            return np.full(batch.num_rows, self.path_time), {}
        fitted = fit(batch, [name], {name: ColumnType.TIMESTAMP})
        times = times_of(fitted.batch.column(0))
        unknown = times == UNKNOWN
        if not unknown.any():
            return times, {}
        if self.bounds is not None:
            return np.where(unknown, self.path_time, times), {}
        missing = np.flatnonzero(unknown).tolist()
        reason = f"no time in column {name!r} (event_time)"
        return times, {row: fitted.bad.get(row, reason) for row in missing}

    def _rest(self, start: int) -> int:
        """Rows of the row range that are not read yet; only known when nothing is cut before."""
        if start == self.row_range.first:
            return self.row_range.rows or 0
        if self.cut:
            raise DataError(f"{self.planned.place} became unreadable while it was being read")
        return self.row_range.end - start

    def _dead(
        self, error: Exception, start: int, stop: int, rows: int, more: dict[str, str | int]
    ) -> Chunk:
        """Rows [start, stop) as one dead row, or the error that stops the job."""
        self.planned.require_unchanged()
        place = self.planned.place
        raised = read_failure(error, place)
        if raised is None and self.spec.bad_rows == "fail":
            where = place_text({"row": start, **more})
            raised = DataError(
                f"{place}, from {where}: cannot be read: {error} "
                "(repair it, or set it aside with bad_rows: dead_letter)"
            )
        if raised is not None:
            raise raised from error
        dead = DeadRow(
            position=Position(self.index, start),
            location={"file": self.row_range.path, **more, "row": start},
            reason=f"cannot be read: {str(error).strip()}",
            rows=rows,
        )
        return empty_chunk(
            self.columns, self.spec.columns, self._position(stop), (dead,) if rows else ()
        )

    def _position(self, row: int) -> Position:
        inside = row < self.row_range.end
        return Position(self.index, row) if inside else Position(self.index + 1, 0)
