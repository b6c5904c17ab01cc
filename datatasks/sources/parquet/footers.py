"""Parquet footers as columns: rows and event-time bounds of every row group."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.config.sources import ColumnType
from forebay.datatasks.sources.common.casting import column_problem, fit
from forebay.datatasks.sources.common.files import READ_ERRORS, Files, Listing, read_failure
from forebay.datatasks.sources.common.times import UNKNOWN, Times, times_of, to_microseconds
from forebay.datatasks.sources.common.versions import FOOTER
from forebay.datatasks.tasks import DataTask, Position, ReadUnit
from forebay.errors import DataError

KNOWN, TO_READ, ALL_NULL = range(3)
_DAY_US = 86_400_000_000
_THREADS = 8
_TAIL_BYTES = 64 * 1024  # holds most footers, so that one read is enough

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Footer:
    """Row groups of one file. `state` says whether `low` and `high` (microseconds) are known.

    digest: of the footer's bytes; empty where nobody read them.
    """

    rows: Ints
    size_bytes: Ints
    low: Ints
    high: Ints
    state: Ints
    digest: str = ""


def read_footers(files: Files, listing: Listing, event_time: str | None) -> list[Footer | str]:
    """The footer of each file, or the reason why it cannot be read.

    Raises:
        DataError: when a file has no such event-time column.
        InfrastructureError: when the storage does not answer.
    """
    paths = listing.paths.to_pylist()
    files.calls += len(paths)
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda path: _read(files, path, event_time), paths))


def _read(files: Files, path: str, event_time: str | None) -> Footer | str:
    try:
        with files.opened(path) as handle:
            return footer_of(*read_footer(arrow_file(handle)), event_time, files.full(path))
    except READ_ERRORS as error:
        raised = read_failure(error, files.full(path))
        if raised is not None:
            raise raised from error
        return str(error).strip()


def arrow_file(opened: Any) -> pa.NativeFile:  # noqa: ANN401 - a path or a file object
    """What a storage opened, as Arrow reads it."""
    if isinstance(opened, str):
        return pa.OSFile(opened, "rb")
    return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, mode="r")


def read_footer(file: pa.NativeFile) -> tuple[pq.FileMetaData, str]:
    """A file's metadata, and a digest of the bytes that they were read from."""
    size = file.size()
    tail = file.read_at(min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
    footer = int.from_bytes(tail[-8:-4], "little") + 8
    if len(tail) < footer <= size:
        tail = file.read_at(footer, size - footer)
    # Whatever is wrong with these bytes, Arrow says it.
    metadata = pq.read_metadata(pa.BufferReader(tail))
    return metadata, hashlib.blake2b(tail[-footer:], digest_size=8).hexdigest()


def footer_of(metadata: pq.FileMetaData, digest: str, event_time: str | None, place: str) -> Footer:
    """Read the row groups of one file's metadata.

    Raises:
        DataError: when the file has no such event-time column.
    """
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    rows = np.array([group.num_rows for group in groups], np.int64)
    size = np.array([group.total_byte_size for group in groups], np.int64)
    bounds = [(UNKNOWN, UNKNOWN, TO_READ)] * len(groups)
    if event_time is not None:
        schema = metadata.schema.to_arrow_schema()
        problem = column_problem(schema, event_time, ColumnType.TIMESTAMP)
        if problem:
            raise DataError(f"{place}: {problem} (event_time of the source)")
        column = _leaf(metadata, event_time)
        stored = schema.field(event_time).type
        bounds = [_bounds(group.column(column).statistics, stored) for group in groups]
    table = np.array(bounds, np.int64).reshape(len(groups), 3)
    return Footer(rows, size, table[:, 0], table[:, 1], table[:, 2], digest)


def with_footers(versions: pa.Array, footers: Sequence[Footer | str]) -> pa.Array:
    """Versions of files with the digests of their footers, where these are known."""
    digests = [each.digest if isinstance(each, Footer) else "" for each in footers]
    texts = pa.array([f"|{FOOTER}={digest}" if digest else "" for digest in digests], pa.string())
    return pc.binary_join_element_wise(versions, texts, "")


def group_ends(metadata: pq.FileMetaData) -> Ints:
    """The row number behind each row group."""
    counts = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    return np.cumsum(np.array(counts, np.int64))


class RowGroups:
    """Says which row group of a file holds a row; remembers the file it was asked about last."""

    def __init__(self, opened: Callable[[str], AbstractContextManager[Any]]) -> None:
        """`opened` opens a file by its path relative to the source's root."""
        self._opened = opened
        self._ends: dict[str, Ints] = {}

    def location(self, path: str, row: int) -> dict[str, str | int]:
        """File, row group and row."""
        group = int(np.searchsorted(self._ends_of(path), row, side="right"))
        return {"file": path, "row_group": group, "row": row}

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        """See `Source.units`: row groups. Of one that a window cuts, the range is a unit."""
        for part in range(position.part, len(task.ranges)):
            row_range = task.ranges[part]
            borders = [row_range.first, row_range.end]
            if row_range.rows == row_range.end - row_range.first:
                ends = self._ends_of(row_range.path)
                inside = ends[(ends > row_range.first) & (ends < row_range.end)]
                borders = [row_range.first, *np.unique(inside).tolist(), row_range.end]
            for first, end in itertools.pairwise(borders):
                begin = Position(part, first if first > row_range.first else 0)
                behind = Position(part, end) if end < row_range.end else Position(part + 1, 0)
                if behind > position:
                    yield ReadUnit(
                        first=begin, end=behind, location=self.location(row_range.path, first)
                    )

    def _ends_of(self, path: str) -> Ints:
        if path not in self._ends:
            with self._opened(path) as handle, pq.ParquetFile(handle) as file:
                self._ends = {path: group_ends(file.metadata)}
        return self._ends[path]


def _leaf(metadata: pq.FileMetaData, name: str) -> int:
    schema = metadata.schema
    leaves = (index for index in range(len(schema)) if schema.column(index).path == name)
    return next(leaves)


def _bounds(statistics: pq.Statistics | None, stored: pa.DataType) -> tuple[int, int, int]:
    unknown = (UNKNOWN, UNKNOWN, TO_READ)
    if statistics is None:
        return unknown
    if not statistics.has_min_max:
        every = statistics.has_null_count and statistics.num_values == 0
        return (UNKNOWN, UNKNOWN, ALL_NULL) if every and statistics.null_count else unknown
    if pa.types.is_timestamp(stored) and statistics.physical_type == "INT64":
        raw = np.array([statistics.min_raw, statistics.max_raw], np.int64)
        low, high = to_microseconds(raw, _unit(statistics, stored)).tolist()
        return low, high, KNOWN
    if pa.types.is_date(stored) and statistics.physical_type == "INT32":
        return statistics.min_raw * _DAY_US, statistics.max_raw * _DAY_US, KNOWN
    return unknown


def _unit(statistics: pq.Statistics, stored: pa.DataType) -> str:
    """The unit of the raw numbers: the file's own, which need not be the one Arrow shows."""
    names = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
    logical = str(statistics.logical_type)
    return next((unit for name, unit in names.items() if name in logical), stored.unit)


def group_times(
    file: pq.ParquetFile, group: int, event_time: str, bounds: tuple[int, int] | None
) -> Times:
    """The time by which each row of a row group is cut: read, nulls filled, clamped to `bounds`.

    A row without a time goes with the group's earliest one.

    Raises:
        DataError: when the group holds no time at all and no bounds say one.
    """
    batches = list(
        file.iter_batches(1 << 20, row_groups=[group], columns=[event_time], use_threads=False)
    )
    parts = [
        times_of(fit(batch, [event_time], {event_time: ColumnType.TIMESTAMP}).batch.column(0))
        for batch in batches
    ]
    times = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    known = times[times != UNKNOWN]
    if not len(known) and bounds is None and len(times):
        raise DataError(f"row group {group} holds no {event_time!r} at all")
    low = int(known.min()) if len(known) else (bounds or (0, 0))[0]
    times = np.where(times == UNKNOWN, low, times)
    return times if bounds is None else np.clip(times, bounds[0], bounds[1] - 1)
