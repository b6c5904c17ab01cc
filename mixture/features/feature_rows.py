"""From views to packed arrays: what kernels write, in memory that Arrow allocates and aligns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.mixture.features.plans import Plans
from forebay.mixture.features.values import Ints, texts
from forebay.mixture.kernels import codes
from forebay.mixture.kernels.arrow_columns import ColumnTable, Views
from forebay.mixture.kernels.library import Kernels, kernels

# What is written at a time fits into a core's cache, and its pages into the TLB.
_BLOCK_BYTES = 128 << 10
_BLOCK_ROWS_MIN, _BLOCK_ROWS_MAX = 256, 1024
_LINE_FLOATS = 16  # features that kernels encode at a time
_ROOM = 4096  # for the joined texts of one row; more if a row needs it
_INT_TEXT = 24


@dataclass(frozen=True)
class FeatureRows:
    """What the kernels made of one batch of N rows.

    dense: a list of float32[D] for each row; ids: one of int64[C]. lists: one array for each list
    feature. Flags (`codes.py`) of each feature say where to look for bad rows.
    """

    dense: pa.Array
    ids: pa.Array
    lists: list[pa.Array]
    dense_flags: Ints
    ids_flags: Ints
    lists_flags: Ints

    def may_hold(self, flag: int) -> bool:
        every = (self.dense_flags, self.ids_flags, self.lists_flags)
        return any((flags & flag).any() for flags in every)


def encode_rows(entries: Kernels, views: Views, plans: Plans) -> FeatureRows:
    dense, dense_flags = _dense(entries, views, plans)
    ids, ids_flags = id_rows(entries, views, plans.ids)
    lists_flags = np.zeros(len(plans.lists), np.int64)
    lists = [
        _list(entries, views, plans.lists[place], lists_flags[place:])
        for place in range(len(plans.lists))
    ]
    return FeatureRows(
        dense=_side_by_side(dense, len(plans.dense), pa.float32()),
        ids=_side_by_side(ids, len(plans.ids), pa.int64()),
        lists=lists,
        dense_flags=dense_flags,
        ids_flags=ids_flags,
        lists_flags=lists_flags,
    )


def _dense(entries: Kernels, views: Views, plans: Plans) -> tuple[pa.Array, Ints]:
    width, rows = len(plans.dense), views.rows
    target = pa.allocate_buffer(4 * rows * width)
    flags, block = np.zeros(width, np.int64), _block(4 * width)
    scratch = np.empty((8 + 8 * _LINE_FLOATS) * block, np.uint8)
    entries.encode_dense(
        *(views.address, plans.dense.ctypes.data, plans.scalings.ctypes.data, width, rows, block),
        *(target.address, flags.ctypes.data, scratch.ctypes.data),
    )
    return pa.Array.from_buffers(pa.float32(), rows * width, [None, target]), flags


def id_rows(entries: Kernels, views: Views, plans: Ints) -> tuple[pa.Array, Ints]:
    """int64[N * features] by row, and the features' flags."""
    width, rows = len(plans), views.rows
    target = pa.allocate_buffer(8 * rows * width)
    flags, block, room = np.zeros(width, np.int64), _block(8 * width), _ROOM
    while room:
        scratch = np.empty(_INT_TEXT + max(8 * block, room), np.uint8)
        longer = entries.encode_ids(
            *(views.address, plans.ctypes.data, width, rows, block),
            *(target.address, flags.ctypes.data, scratch.ctypes.data, room),
        )
        room = 2 * longer
    return pa.Array.from_buffers(pa.int64(), rows * width, [None, target]), flags


def _list(entries: Kernels, views: Views, plan: Ints, flag: Ints) -> pa.Array:
    items = views.items(int(plan[codes.VIEW]))
    values, offsets = pa.allocate_buffer(8 * items), pa.allocate_buffer(4 * (views.rows + 1))
    block = _BLOCK_ROWS_MAX
    scratch = np.empty(_INT_TEXT + 8 * block, np.uint8)
    count = entries.encode_list(
        *(views.address, plan.ctypes.data, views.rows, block),
        *(values.address, offsets.address, flag.ctypes.data, scratch.ctypes.data),
    )
    found = pa.Array.from_buffers(pa.int64(), count, [None, values])
    kind = pa.list_(pa.int64())
    return pa.Array.from_buffers(kind, views.rows, [None, offsets], children=[found])


def _side_by_side(values: pa.Array, width: int, kind: pa.DataType) -> pa.Array:
    rows = len(values) // width if width else 0
    return pa.Array.from_buffers(pa.list_(kind, width), rows, [None], children=[values])


def _block(row_bytes: int) -> int:
    return min(_BLOCK_ROWS_MAX, max(_BLOCK_ROWS_MIN, _BLOCK_BYTES // max(1, row_bytes)))


def event_ids(columns: Sequence[tuple[pa.Array, ColumnType]]) -> pa.Array:
    """Fingerprint64 of the texts of several columns, joined with U+001F, as int64[N].

    A null part is empty.

    Raises:
        DataError: when a column is damaged, or stored in a way that kernels cannot read.
    """
    read = [_readable(values, kind) for values, kind in columns]
    names = [str(place) for place in range(len(read))]
    batch = pa.RecordBatch.from_arrays([values for values, _ in read], names=names)
    table = ColumnTable([(name, kind) for name, (_, kind) in zip(names, read, strict=True)])
    parts = np.arange(len(read), dtype=np.int64)
    plan: Ints = np.zeros((1, codes.PLAN_WIDTH), np.int64)
    plan[0, codes.METHOD], plan[0, codes.COUNT] = codes.IDENTITY, len(parts)
    plan[0, codes.TABLE] = parts.ctypes.data
    entries = kernels()
    found, _ = id_rows(entries, table.views(entries, batch), plan)
    return found


def _readable(values: pa.Array, kind: ColumnType) -> tuple[pa.Array, ColumnType]:
    """Floats as text, which Python writes: kernels cannot."""
    if kind is ColumnType.FLOAT:
        return texts(values, kind), ColumnType.STRING
    return values, kind
