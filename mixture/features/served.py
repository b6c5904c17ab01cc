"""Served rows: the batch that travels from executor to trainer, and the arrays of a step in it.

Features are sent in the form in which the step reads them: all numbers of a row side by side, and
all ids too. Slices of such a batch, and the arrays of a received one, are views without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.datasets import Feed
from forebay.mixture.features.layout import FeatureLayout, IdColumn
from forebay.mixture.features.served_times import NO_TIMES, ServedTimes
from forebay.mixture.features.values import Ints
from forebay.mixture.minibatch import LabelRows, Minibatch

EVENT_TIME, WAIT, LABEL = "event_time", "wait", "label"
DENSE, IDS = "dense", "ids"
LIST_PREFIX = "feature."  # so that no feature can be mistaken for another column


def served_schema(layout: FeatureLayout, times: ServedTimes = NO_TIMES) -> pa.Schema:
    """row_id, event_id, labels, times, dense, ids, then each list feature in layout order."""
    names = ["", *layout.further_labels]
    dense, ids = len(layout.dense), len(layout.ids)
    fields = [
        pa.field("row_id", pa.int64()),
        pa.field("event_id", pa.int64()),
        *(pa.field(_of_label(LABEL, name), pa.float32()) for name in names),
        *([pa.field(EVENT_TIME, pa.int64())] if times.event_times else []),
        *([pa.field(WAIT, pa.float32())] if times.waits else []),
        *([pa.field(DENSE, pa.list_(pa.float32(), dense))] if dense else []),
        *([pa.field(IDS, pa.list_(pa.int64(), ids))] if ids else []),
        *(pa.field(LIST_PREFIX + column.name, pa.list_(pa.int64())) for column in layout.lists),
    ]
    return pa.schema(fields)


def to_minibatch(
    batch: pa.RecordBatch, segments: Sequence[tuple[int, int]], feed: Feed, layout: FeatureLayout
) -> Minibatch:
    """Arrays of one step from served rows; `segments` are (source index, rows) in row order.

    Raises:
        ValueError: when segments or columns do not fit, or an id is outside of its feature's range.
    """
    rows = batch.num_rows
    sources = [source for source, _ in segments]
    counts = [count for _, count in segments]
    if sum(counts) != rows:
        raise ValueError(f"segments name {sum(counts)} rows, but the batch holds {rows}")
    ids = _side_by_side(batch, IDS, len(layout.ids), np.int64)
    _require_ranges(ids, layout.ids)
    lists = tuple(_list_arrays(batch.column(LIST_PREFIX + each.name)) for each in layout.lists)
    for (_, values), id_column in zip(lists, layout.lists, strict=True):
        _require_ranges(values.reshape(-1, 1), [id_column])
    return Minibatch(
        feed=feed,
        row_ids=batch.column("row_id").to_numpy(),
        event_ids=batch.column("event_id").to_numpy(),
        sources=np.repeat(np.array(sources, np.int32), counts),
        labels=batch.column(LABEL).to_numpy(),
        dense=_side_by_side(batch, DENSE, len(layout.dense), np.float32),
        ids=ids,
        lists=lists,
        event_times=_optional(batch, EVENT_TIME),
        waits=_optional(batch, WAIT),
        further=tuple(_label_rows(batch, name) for name in layout.further_labels),
    )


def arrays_by_column(batch: pa.RecordBatch) -> dict[str, npt.NDArray[Any] | tuple[Ints, Ints]]:
    """Arrays of served rows (views), by column name.

    Numbers and ids side by side are [rows, width]; lists are (row_splits int64[N+1], values).
    """
    return {name: _array_of(batch, name) for name in batch.schema.names}


def _array_of(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any] | tuple[Ints, Ints]:
    column = batch.column(name)
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return _side_by_side(batch, name, kind.list_size, kind.value_type.to_pandas_dtype())
    if pa.types.is_list(kind):
        return _list_arrays(column)
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def _label_rows(batch: pa.RecordBatch, name: str) -> LabelRows:
    return LabelRows(batch.column(_of_label(LABEL, name)).to_numpy())


def _of_label(column: str, name: str) -> str:
    return f"{column}:{name}" if name else column


def _side_by_side(
    batch: pa.RecordBatch, name: str, width: int, kind: type[np.generic]
) -> npt.NDArray[Any]:
    """A column of lists of equal length as an array [rows, width], without a copy."""
    if not width:
        return np.empty((batch.num_rows, 0), kind)
    values: npt.NDArray[Any] = batch.column(name).flatten().to_numpy()
    return values.reshape(batch.num_rows, width)


def _optional(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any] | None:
    place = batch.schema.get_field_index(name)
    return None if place < 0 else batch.column(place).to_numpy()


def _require_ranges(found: Ints, columns: Sequence[IdColumn]) -> None:
    """Refuse ids that tables have no row for: TensorFlow on a GPU would make one up."""
    if not found.size:
        return
    # As unsigned numbers, negative ids are the largest.
    largest = found.view(np.uint64).max(axis=0)
    for place, column in enumerate(columns):
        if largest[place] >= column.cardinality:
            ids = found[:, place]
            outside = ids[(ids < 0) | (ids >= column.cardinality)][0]
            raise ValueError(
                f"feature {column.name!r}: id {outside} is outside of 0 to {column.cardinality - 1}"
            )


def _list_arrays(column: pa.Array) -> tuple[Ints, Ints]:
    offsets = column.offsets.to_numpy().astype(np.int64)
    # A slice keeps its parent's offsets: only the values between them belong to it.
    values = column.values.to_numpy()[offsets[0] : offsets[-1]]
    return offsets - offsets[0], values
