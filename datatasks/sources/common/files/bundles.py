"""Row ranges of files become data tasks: small files are bundled, big ones split. All columnar."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.task_table import ROW_RANGE_TYPE, TASK_SCHEMA

BUNDLE_ROWS = 64 * 1024
SPLIT_ROWS = 256 * 1024

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowRanges:
    """Row ranges of files, one array for each property; a range is in one span.

    file: index in the sorted list of paths. rows: rows of the range that are in the span.
    hour: whole hours from the span's start to the range's first time.
    """

    span: Ints
    hour: Ints
    file: Ints
    first: Ints
    end: Ints
    rows: Ints
    size_bytes: Ints

    def __len__(self) -> int:
        return len(self.span)

    def take(self, order: npt.NDArray[Any]) -> RowRanges:
        return RowRanges(*(values[order] for values in self.arrays()))

    def arrays(self) -> tuple[Ints, ...]:
        """All properties in the order of the fields."""
        return tuple(vars(self).values())

    @classmethod
    def concatenate(cls, parts: Sequence[RowRanges]) -> RowRanges:
        columns = zip(*(part.arrays() for part in parts), strict=True)
        return cls(*(np.concatenate(values) for values in columns))

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> RowRanges:
        """Ranges from a few rows of numbers, in the order of the fields."""
        return cls(*np.array(rows, np.int64).reshape(len(rows), 7).T)


def to_tasks(
    ranges: RowRanges,
    paths: pa.Array,
    partitions: pa.Array | None = None,
    bundle_hours: int = 1,
    versions: pa.Array | None = None,
) -> pa.Table:
    """A table of TASK_SCHEMA ordered by (span, hour, partition, first path).

    Args:
        ranges: in any order.
        paths: text of each file index; ascending.
        partitions: partition of each file index; files of different ones share no task.
        bundle_hours: small files whose hours are within that many hours may share a task, in the
            order of their hours.
        versions: what planning saw of each file index; reading compares it.
    """
    if not len(ranges):
        return TASK_SCHEMA.empty_table()
    unnamed = pa.repeat(pa.scalar("", pa.string()), len(paths))
    if partitions is None:
        partitions, ranks = unnamed, np.zeros(len(paths), np.int64)
    else:
        ranks = np.unique(np.asarray(partitions.to_pylist()), return_inverse=True)[1]
    stretch = ranges.hour // bundle_hours
    order = np.lexsort(
        (ranges.first, ranges.file, ranges.hour, ranks[ranges.file], stretch, ranges.span)
    )
    joined = _merged(ranges.take(order))
    fresh = np.ones(len(joined), np.bool_)
    fresh[1:] = ~_same(joined.span, joined.hour // bundle_hours, ranks[joined.file])
    starts = _starts(fresh, joined.rows, BUNDLE_ROWS)
    table = _table(joined, starts, paths, unnamed if versions is None else versions, partitions)
    if bundle_hours == 1:
        return table
    hours = table["hour"].to_numpy()
    return table.take(pa.array(np.lexsort((hours, table["span"].to_numpy()))))


def _merged(ranges: RowRanges) -> RowRanges:
    """Join whole neighbours of one file and hour, up to SPLIT_ROWS rows."""
    whole = ranges.rows == ranges.end - ranges.first
    joined = np.zeros(len(ranges), np.bool_)
    joined[1:] = (
        _same(ranges.span, ranges.hour, ranges.file)
        & (ranges.first[1:] == ranges.end[:-1])
        & whole[1:]
        & whole[:-1]
        & (ranges.rows[1:] > 0)
    )
    starts = _starts(~joined, ranges.rows, SPLIT_ROWS)
    last = np.append(starts[1:], len(ranges)) - 1
    return RowRanges(
        ranges.span[starts],
        ranges.hour[starts],
        ranges.file[starts],
        ranges.first[starts],
        ranges.end[last],
        np.add.reduceat(ranges.rows, starts),
        np.add.reduceat(ranges.size_bytes, starts),
    )


def _same(*keys: Ints) -> npt.NDArray[np.bool_]:
    """Whether each value but the first equals the one before it, in all keys."""
    return np.asarray(np.logical_and.reduce([key[1:] == key[:-1] for key in keys]))


def _starts(fresh: npt.NDArray[np.bool_], rows: Ints, limit: int) -> Ints:
    """Where runs start, when a run also ends each time it has passed `limit` rows."""
    before = np.cumsum(rows) - rows
    run = np.cumsum(fresh) - 1
    base = before[fresh]
    bucket = (before - base[run]) // limit
    new = fresh.copy()
    new[1:] |= bucket[1:] != bucket[:-1]
    return np.flatnonzero(new)


def _table(
    joined: RowRanges, starts: Ints, paths: pa.Array, versions: pa.Array, partitions: pa.Array
) -> pa.Table:
    file = pa.array(joined.file)
    columns = [
        paths.take(file),
        *(pa.array(each) for each in (joined.first, joined.end, joined.rows, joined.size_bytes)),
        versions.take(file),
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(ROW_RANGE_TYPE))
    offsets = pa.array(np.append(starts, len(joined)).astype(np.int32))
    whole = joined.rows == joined.end - joined.first
    return pa.table(
        [
            pa.array(joined.span[starts].astype(np.int32)),
            pa.array(joined.hour[starts].astype(np.int32)),
            partitions.take(pa.array(joined.file[starts])),
            pa.ListArray.from_arrays(offsets, structs),
            pa.array(np.add.reduceat(joined.rows, starts)),
            pa.array(np.add.reduceat(joined.size_bytes, starts)),
            pa.array(np.logical_or.reduceat(~whole, starts)),
        ],
        schema=TASK_SCHEMA,
    )


def fingerprints(
    spans: int, ranges: RowRanges, paths: pa.Array, versions: pa.Array, salt: str
) -> list[str]:
    """For each span a digest of the files (path, version) that hold its rows."""
    texts = []
    order = np.argsort(ranges.span, kind="stable")
    bounds = np.searchsorted(ranges.span[order], np.arange(spans + 1))
    for span in range(spans):
        files = pa.array(np.unique(ranges.file[order[bounds[span] : bounds[span + 1]]]))
        digest = hashlib.sha256(salt.encode())
        for column in (paths.take(files), versions.take(files)):
            digest.update("\n".join(column.to_pylist()).encode())
            digest.update(b"\n\n")
        texts.append(digest.hexdigest()[:32])
    return texts
