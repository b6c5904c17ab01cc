"""Reading `log` segments, resumable at any row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.deleted_rows import ways_out
from forebay.datatasks.sources.common.files.listing import READ_ERRORS, Files, read_failure
from forebay.datatasks.sources.common.files.versions import PlannedFile, plan_again
from forebay.datatasks.sources.common.rows.chunks import (
    Stored,
    empty_chunk,
    joined,
    place_text,
    stored_rows,
    to_chunk,
)
from forebay.datatasks.sources.common.values.casting import column_problem
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import hours_of, outside
from forebay.datatasks.sources.log.segment_file import SegmentFile
from forebay.datatasks.sources.log.writer import parse_segment
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position
from forebay.errors import DataError
from forebay.system.instants import to_us


class LogReader:
    def __init__(self, spec: SourceSpec, files: Files) -> None:
        self._spec = spec
        self._files = files

    def read(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        start = position or Position(0, 0)
        last = empty_chunk(columns, self._spec.columns, Position(len(task.ranges), 0))
        chunks = (
            chunk
            for index in range(start.part, len(task.ranges))
            for chunk in _Segment(self._spec, self._files, task, index).chunks(
                start.row if index == start.part else 0, columns, chunk_rows
            )
        )
        return joined(chunks, chunk_rows, last)


class _Segment:
    """One row range of one task: a whole segment."""

    def __init__(self, spec: SourceSpec, files: Files, task: DataTask, index: int) -> None:
        self.spec = spec
        self.index = index
        self.row_range = task.ranges[index]
        path = self.row_range.path
        self.path = files.full(path)
        span = Interval(task.data_from, task.data_to)
        self.deleted = f"rows of window {task.window} were deleted. {ways_out([span])}"
        self.planned = PlannedFile(
            self.path,
            self.row_range.version,
            lambda: files.version(path, self.deleted),
            plan_again(task.window),
        )
        self.partition, _, name = path.rpartition("/")
        self.base, self.rows, commit_ms = parse_segment(name)
        time = np.array([commit_ms * 1000], np.int64)
        bounds = to_us(span.start), to_us(span.end)
        self.published = time
        self.hour = hours_of(time, *bounds)[0]
        self.outside = outside(time, *bounds)

    def chunks(self, start: int, columns: Sequence[str], chunk_rows: int) -> Iterator[Chunk]:
        for chunk in self._read(start, columns, chunk_rows):
            if chunk.end.part > self.index:  # whoever has this reads nothing of it again
                self.planned.require_unchanged()
            yield chunk

    def _read(self, start: int, columns: Sequence[str], chunk_rows: int) -> Iterator[Chunk]:
        self.planned.require_unchanged()
        at = start
        try:
            file = SegmentFile(self.path)
            self._check(file.schema, columns)
            file.choose(columns)
            for stored in self._stored(file, start, stored_rows(chunk_rows)):
                yield to_chunk(stored, columns, self.spec.columns, self.spec.bad_rows)
                at = int(stored.rows[-1]) + 1
        except READ_ERRORS as error:
            yield self._dead(error, at, columns)

    def _stored(self, file: SegmentFile, start: int, chunk_rows: int) -> Iterator[Stored]:
        at = 0
        for number, rows in enumerate(file.rows):
            if at + rows > self.rows:
                raise pa.ArrowInvalid(f"it holds more rows than the {self.rows} that its name says")
            if start < at + rows:
                for first, part in file.parts(number, max(start - at, 0), chunk_rows):
                    yield self._part(part, at + first)
            at += rows
        if at != self.rows:
            raise pa.ArrowInvalid(f"it holds {at} rows, but its name says {self.rows}")

    def _part(self, batch: pa.RecordBatch, first: int) -> Stored:
        end = first + batch.num_rows
        rows = np.arange(first, end)
        return Stored(
            batch=batch,
            part=self.index,
            rows=rows,
            row_ids=row_ids(self.partition, rows + self.base),
            hours=np.full(len(rows), self.hour, np.int32),
            end=Position(self.index, end) if end < self.rows else Position(self.index + 1, 0),
            locate=self._location,
            bad={},
            outside=None if self.outside is None else np.repeat(self.outside, len(rows)),
            published=np.repeat(self.published, len(rows)),
        )

    def _check(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        for name in columns:
            problem = column_problem(schema, name, self.spec.columns[name])
            if problem:
                raise DataError(
                    f"{self.path}: {problem} (correct the writer, or source {self.spec.name!r})"
                )

    def _dead(self, error: Exception, at: int, columns: Sequence[str]) -> Chunk:
        self.planned.require_unchanged()
        raised = read_failure(error, self.path, self.deleted)
        where = self._location(at)
        if raised is None and self.spec.bad_rows == "fail":
            raised = DataError(
                f"{self.path} ({place_text(where)}): cannot be read: {error} "
                "(repair it, or set it aside with bad_rows: dead_letter)"
            )
        if raised is not None:
            raise raised from error
        dead = DeadRow(
            position=Position(self.index, at),
            location=where,
            reason=f"cannot be read: {str(error).strip()}",
            rows=self.rows - at,
        )
        end = Position(self.index + 1, 0)
        return empty_chunk(columns, self.spec.columns, end, (dead,) if dead.rows else ())

    def _location(self, row: int) -> dict[str, str | int]:
        return segment_location(self.row_range.path, row)


def segment_location(path: str, row: int) -> dict[str, str | int]:
    partition, _, name = path.rpartition("/")
    base = parse_segment(name)[0]
    return {"file": path, "partition": partition, "offset": base + row, "row": row}
