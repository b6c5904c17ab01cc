"""Pieces of files become data tasks: small files are bundled, big ones split. All columnar."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.sources.common.files import Listing
from forebay.datatasks.tasks import TASK_SCHEMA, UNIT_TYPE

BUNDLE_ROWS = 64 * 1024
SPLIT_ROWS = 256 * 1024

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Row ranges of files, one array for each property; a piece lies in one span.

    file: index in the sorted list of paths. rows: rows of the range that lie in the span.
    slot: whole hours from the span's start to the piece's first time.
    """

    span: Ints
    slot: Ints
    file: Ints
    first: Ints
    end: Ints
    rows: Ints
    size_bytes: Ints

    def __len__(self) -> int:
        """Pieces."""
        return len(self.span)

    def take(self, order: npt.NDArray[Any]) -> Pieces:
        """Some pieces, in that order."""
        return Pieces(*(values[order] for values in self.arrays()))

    def arrays(self) -> tuple[Ints, ...]:
        """All properties in the order of the fields."""
        return (
            self.span,
            self.slot,
            self.file,
            self.first,
            self.end,
            self.rows,
            self.size_bytes,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Pieces]) -> Pieces:
        """All pieces of several sets."""
        columns = zip(*(part.arrays() for part in parts), strict=True)
        return cls(*(np.concatenate(values) for values in columns))

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Pieces:
        """Pieces from a few rows of numbers, in the order of the fields."""
        table = np.array(rows, np.int64).reshape(len(rows), 7)
        return cls(*(table[:, column] for column in range(7)))


def to_tasks(
    pieces: Pieces,
    paths: pa.Array,
    partitions: pa.Array | None = None,
    bundle_hours: int = 1,
) -> pa.Table:
    """A table of TASK_SCHEMA ordered by (span, slot, partition, first path).

    Args:
        pieces: in any order.
        paths: text of each file index; ascending.
        partitions: partition of each file index; files of different ones share no task.
        bundle_hours: small files whose slots lie within so many hours may share a task, in the
            order of their slots.
    """
    if not len(pieces):
        return TASK_SCHEMA.empty_table()
    ranks = np.zeros(len(paths), np.int64)
    if partitions is not None:
        ranks = np.unique(np.asarray(partitions.to_pylist()), return_inverse=True)[1]
    stretch = pieces.slot // bundle_hours
    order = np.lexsort(
        (pieces.first, pieces.file, pieces.slot, ranks[pieces.file], stretch, pieces.span)
    )
    units = _merged(pieces.take(order))
    starts = _task_starts(units, ranks, bundle_hours)
    table = _table(units, starts, paths, partitions)
    if bundle_hours == 1:
        return table
    slots = table["slot"].to_numpy()
    return table.take(pa.array(np.lexsort((slots, table["span"].to_numpy()))))


def _merged(pieces: Pieces) -> Pieces:
    """Join whole neighbours of one file and slot, up to SPLIT_ROWS rows."""
    whole = pieces.rows == pieces.end - pieces.first
    joined = np.zeros(len(pieces), np.bool_)
    joined[1:] = (
        _same(pieces.span, pieces.slot, pieces.file)
        & (pieces.first[1:] == pieces.end[:-1])
        & whole[1:]
        & whole[:-1]
        & (pieces.rows[1:] > 0)
    )
    starts = _starts(~joined, pieces.rows, SPLIT_ROWS)
    last = np.append(starts[1:], len(pieces)) - 1
    return Pieces(
        pieces.span[starts],
        pieces.slot[starts],
        pieces.file[starts],
        pieces.first[starts],
        pieces.end[last],
        np.add.reduceat(pieces.rows, starts),
        np.add.reduceat(pieces.size_bytes, starts),
    )


def _task_starts(units: Pieces, ranks: Ints, bundle_hours: int) -> Ints:
    fresh = np.ones(len(units), np.bool_)
    fresh[1:] = ~_same(units.span, units.slot // bundle_hours, ranks[units.file])
    return _starts(fresh, units.rows, BUNDLE_ROWS)


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


def _table(units: Pieces, starts: Ints, paths: pa.Array, partitions: pa.Array | None) -> pa.Table:
    columns = [
        paths.take(pa.array(units.file)),
        *(pa.array(each) for each in (units.first, units.end, units.rows, units.size_bytes)),
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(UNIT_TYPE))
    offsets = pa.array(np.append(starts, len(units)).astype(np.int32))
    if partitions is None:
        names = pa.repeat(pa.scalar("", pa.string()), len(starts))
    else:
        names = partitions.take(pa.array(units.file[starts]))
    whole = units.rows == units.end - units.first
    return pa.table(
        [
            pa.array(units.span[starts].astype(np.int32)),
            pa.array(units.slot[starts].astype(np.int32)),
            names,
            pa.ListArray.from_arrays(offsets, structs),
            pa.array(np.add.reduceat(units.rows, starts)),
            pa.array(np.add.reduceat(units.size_bytes, starts)),
            pa.array(np.logical_or.reduceat(~whole, starts)),
        ],
        schema=TASK_SCHEMA,
    )


def fingerprints(spans: int, pieces: Pieces, listing: Listing, salt: str) -> list[str]:
    """For each span a digest of the files (path, size, version) that hold its rows."""
    texts = []
    order = np.argsort(pieces.span, kind="stable")
    bounds = np.searchsorted(pieces.span[order], np.arange(spans + 1))
    for span in range(spans):
        files = np.unique(pieces.file[order[bounds[span] : bounds[span + 1]]])
        digest = hashlib.sha256(salt.encode())
        part = listing.take(files)
        for column in (part.paths, part.versions):
            digest.update("\n".join(column.to_pylist()).encode())
        digest.update(part.sizes.tobytes())
        texts.append(digest.hexdigest()[:32])
    return texts
