"""Parquet footers as columns: rows and event-time bounds of every row group, cached by version."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.config.sources import ColumnType
from forebay.datatasks.sources.common.casting import column_problem, fit
from forebay.datatasks.sources.common.files import READ_ERRORS, Files, Listing, read_failure
from forebay.datatasks.sources.common.times import UNKNOWN, Times, times_of, to_microseconds
from forebay.errors import DataError

KNOWN, TO_READ, ALL_NULL = range(3)
_DAY_US = 86_400_000_000
_CACHE_MAX = 200_000
_THREADS = 8

Ints = npt.NDArray[np.int64]
_Key = tuple[str, int, str, str | None]


@dataclass(frozen=True)
class Footer:
    """Row groups of one file. `state` says whether `low` and `high` (microseconds) are known."""

    rows: Ints
    size_bytes: Ints
    low: Ints
    high: Ints
    state: Ints


_cache: OrderedDict[_Key, Footer] = OrderedDict()
_cache_lock = threading.Lock()


def read_footers(files: Files, listing: Listing, event_time: str | None) -> list[Footer | str]:
    """The footer of each file, or the reason why it cannot be read. Unchanged ones are cached.

    Raises:
        DataError: when a file has no such event-time column.
        InfrastructureError: when the storage does not answer.
    """
    paths = listing.paths.to_pylist()
    versions = listing.versions.to_pylist()
    keys = [
        (files.full(path), int(size), version, event_time)
        for path, size, version in zip(paths, listing.sizes, versions, strict=True)
    ]
    found: dict[int, Footer | str] = {}
    with _cache_lock:
        found.update((index, _cache[key]) for index, key in enumerate(keys) if key in _cache)
    missing = [index for index in range(len(keys)) if index not in found]
    files.calls += len(missing)
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda index: _read(files, paths[index], event_time), missing)
        for index, footer in zip(missing, read, strict=True):
            found[index] = footer
            if isinstance(footer, Footer):
                _remember(keys[index], footer)
    return [found[index] for index in range(len(keys))]


def _remember(key: _Key, footer: Footer) -> None:
    with _cache_lock:
        _cache[key] = footer
        while len(_cache) > _CACHE_MAX:
            _cache.popitem(last=False)


def _read(files: Files, path: str, event_time: str | None) -> Footer | str:
    try:
        with files.opened(path) as handle, pq.ParquetFile(handle, pre_buffer=False) as file:
            return footer_of(file.metadata, event_time, files.full(path))
    except READ_ERRORS as error:
        raised = read_failure(error, files.full(path))
        if raised is not None:
            raise raised from error
        return str(error).strip()


def footer_of(metadata: pq.FileMetaData, event_time: str | None, place: str) -> Footer:
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
    return Footer(rows, size, table[:, 0], table[:, 1], table[:, 2])


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
        if path not in self._ends:
            with self._opened(path) as handle, pq.ParquetFile(handle) as file:
                self._ends = {path: group_ends(file.metadata)}
        group = int(np.searchsorted(self._ends[path], row, side="right"))
        return {"file": path, "row_group": group, "row": row}


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
