"""Files that need Iceberg's own reading: delete files, renamed or added columns.

pyiceberg applies both and gives the rows that are left. A row's number is then its place among
them: the physical row number where nothing was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.files.bundles import RowRanges
from forebay.datatasks.sources.common.files.listing import read_failure
from forebay.datatasks.sources.common.files.versions import PlannedFile, version_text
from forebay.datatasks.sources.common.row_groups.planner import no_times, rows_by_span
from forebay.datatasks.sources.common.rows.chunks import (
    Ints,
    Stored,
    bad_texts,
    empty_chunk,
    joined,
    to_chunk,
)
from forebay.datatasks.sources.common.values.casting import event_times
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.common.values.times import UNKNOWN, Spans, hours_within, misplaced
from forebay.datatasks.sources.iceberg.files import CUT_US, DataFile, manifest_bounds
from forebay.datatasks.sources.parquet.read import LOST
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, RowRange
from forebay.errors import DataError
from forebay.system.instants import to_us


def merged_batches(table: Any, scan_task: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    """One file as the table's schema has it, in file order. DataError for what cannot be read."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    schema = table.schema().select(*columns)
    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    try:
        for batch in scan.to_record_batches([scan_task]):
            yield batch.select(list(columns))
    except Exception as error:  # delete files may hold anything
        place = scan_task.file.file_path
        known = read_failure(error, place)
        raise known or DataError(
            f"{place} cannot be read: {str(error) or type(error).__name__}"
        ) from error


def merged_ranges(
    table: Any,  # noqa: ANN401
    files: Mapping[int, DataFile],
    event_time: str,
    spans: Spans,
    policy: Literal["fail", "dead_letter"],
) -> RowRanges:
    """One range for each file and span, counted by reading the event times.

    A file without any time is in each span, as in the Parquet loop.
    """
    rows: list[tuple[int, ...]] = []
    for index, file in files.items():
        batches = merged_batches(table, file.task, [event_time])
        parts = [event_times(batch, event_time) for batch in batches]
        read = np.concatenate([np.zeros(0, np.int64), *parts])
        if len(read) and (read == UNKNOWN).all():
            if policy == "fail":
                raise DataError(
                    f"{file.path}: {no_times(event_time)} (or set its rows aside with bad_rows: "
                    "dead_letter)"
                )
            rows += [(span, 0, index, 0, 0, len(read), 0) for span in range(len(spans))]
            continue
        times = _placed(read, file.low, file.high)
        rows += rows_by_span(spans, times, index, 0, file.size_bytes)
    return RowRanges.of(rows)


def _placed(times: Ints, low: int | None, high: int | None) -> Ints:
    """The times by which rows are cut.

    A row without a time goes with the file's earliest one, as in the Parquet loop. None is outside
    of what the manifest says: no other window would find the file.
    """
    known = times[times != UNKNOWN]
    if not len(known):
        return times
    filled = np.where(times == UNKNOWN, known.min(), times)
    return filled if low is None or high is None else np.clip(filled, low, high + CUT_US)


@dataclass(frozen=True)
class MergedReader:
    """table: pyiceberg's, with the planned snapshot. scan_tasks: its task of each relative path."""

    spec: SourceSpec
    table: Any
    scan_tasks: dict[str, Any]
    planned: Callable[[str, str], PlannedFile]  # of a path and its planned version

    def read(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        start = position or Position(0, 0)
        last = empty_chunk(columns, self.spec.columns, Position(len(task.ranges), 0))
        chunks = (
            chunk
            for index in range(start.part, len(task.ranges))
            for chunk in self._range(
                task, index, start.row if index == start.part else 0, columns, chunk_rows
            )
        )
        return joined(chunks, chunk_rows, last)

    def _range(
        self, task: DataTask, index: int, start: int, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        row_range = task.ranges[index]
        if row_range.first == row_range.end:
            yield self._lost(row_range, index, columns)
            return
        name = str(self.spec.event_time)
        wanted = list(dict.fromkeys([*columns, name]))
        if row_range.path not in self.scan_tasks:
            raise DataError(
                f"{row_range.path} is no longer in the planned snapshot: forget the window "
                "(`forebay forget`) and run it again"
            )
        span = (to_us(task.data_from), to_us(task.data_to))
        scan_task = self.scan_tasks[row_range.path]
        files = self._files(row_range, scan_task)
        for each in files:
            each.require_unchanged()
        batches = merged_batches(self.table, scan_task, wanted)
        whole = [(batch, event_times(batch, name)) for batch in batches]
        for each in files:
            each.require_unchanged()
        bounds = manifest_bounds(self.table, scan_task, name)
        times = _placed(np.concatenate([np.zeros(0, np.int64), *(t for _, t in whole)]), *bounds)
        first = 0
        for batch, known in whole:
            for low in range(0, batch.num_rows, chunk_rows):
                rows = np.arange(first + low, first + min(low + chunk_rows, batch.num_rows))
                kept = (rows >= max(row_range.first, start)) & (rows < row_range.end)
                kept &= (times[rows] >= span[0]) & (times[rows] < span[1])
                if kept.any():
                    chosen = rows[kept]
                    own = known[chosen - first]
                    missing = np.flatnonzero(own == UNKNOWN).tolist()
                    some = batch.take(pa.array(chosen - first))
                    stored = Stored(
                        batch=some,
                        part=index,
                        rows=chosen,
                        row_ids=row_ids(row_range.path, chosen),
                        hours=hours_within(own, *span),
                        end=Position(index, int(chosen[-1]) + 1),
                        locate=lambda row: {"file": row_range.path, "row": row},
                        outside=misplaced(own, *span),
                        times=own,
                        bad=bad_texts(some, columns, self.spec.columns)
                        | dict.fromkeys(missing, f"no time in column {name!r} (event_time)"),
                    )
                    yield to_chunk(stored, columns, self.spec.columns, self.spec.bad_rows)
            first += batch.num_rows

    def _lost(self, row_range: RowRange, index: int, columns: Sequence[str]) -> Chunk:
        if self.spec.bad_rows == "fail":
            raise DataError(f"{row_range.path}: {LOST}")
        dead = DeadRow(
            position=Position(index, row_range.first),
            location={"file": row_range.path, "row": row_range.first},
            reason=LOST,
            rows=row_range.rows or 0,
        )
        return empty_chunk(columns, self.spec.columns, Position(index + 1, 0), (dead,))

    def _files(self, row_range: RowRange, scan_task: Any) -> list[PlannedFile]:  # noqa: ANN401
        deletes = [
            self.planned(each.file_path, version_text(each.file_size_in_bytes))
            for each in scan_task.delete_files
        ]
        return [self.planned(row_range.path, row_range.version), *deletes]
