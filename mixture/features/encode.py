"""Encoder: stored columns to the numbers that a model reads, a whole batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.column_fit import label_misfits
from forebay.config.datasets import DatasetSpec, Feed
from forebay.config.features import (
    BucketiseFeature,
    CrossFeature,
    FeatureSpec,
    HashFeature,
    NumericFeature,
    VocabularyFeature,
)
from forebay.config.sources import LIST_ITEMS, ColumnType, SourceSpec
from forebay.errors import ConfigError
from forebay.mixture.features.fingerprint import buckets_of, event_ids, joined_texts
from forebay.mixture.features.labels import labels
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.values import (
    Floats,
    Ints,
    null_mask,
    numbers,
    texts,
    time_part,
)
from forebay.mixture.minibatch import Minibatch

FIRST_FEATURE = 3  # columns before it: row_id, event_id, label
# A minibatch holds so many rows, however large each is: of 1,024 these are half a gigabyte.
LIST_ITEMS_MAX = 65_536
FEATURE_PREFIX = "feature."  # so that no feature is mistaken for row_id, event_id or label


@dataclass(frozen=True)
class Encoded:
    """A batch in the served schema, and which of its rows have no label.

    bad: rows (index in the batch) that no model can learn from, and why.
    """

    batch: pa.RecordBatch
    null_label: npt.NDArray[np.bool_]
    bad: Mapping[int, str] = field(default_factory=dict)


def served_schema(layout: FeatureLayout) -> pa.Schema:
    """What executors serve: row_id, event_id, label, then each feature in layout order."""
    fields = [
        pa.field("row_id", pa.int64()),
        pa.field("event_id", pa.int64()),
        pa.field("label", pa.float32()),
        *(pa.field(FEATURE_PREFIX + name, pa.float32()) for name in layout.dense),
        *(pa.field(FEATURE_PREFIX + column.name, pa.int64()) for column in layout.ids),
        *(pa.field(FEATURE_PREFIX + column.name, pa.list_(pa.int64())) for column in layout.lists),
    ]
    return pa.schema(fields)


class Encoder:
    """Encodes batches of one source. Safe for use from several threads."""

    def __init__(self, dataset: DatasetSpec, source: SourceSpec, layout: FeatureLayout) -> None:
        """Check that the source declares every column that is needed.

        Raises:
            ConfigError: for a missing column, or a label rule that does not fit its type.
        """
        for column in layout.stored_columns:
            if column not in source.columns:
                raise ConfigError(f"source {source.name!r} declares no column {column!r}")
        for misfit in label_misfits(dataset.label, source.columns[dataset.label.column]):
            raise ConfigError(f"source {source.name!r}: {misfit.message}")
        self._label = dataset.label
        self._event_id = dataset.event_id_columns
        self._layout = layout
        self._types = source.columns
        self._schema = served_schema(layout)

    def encode(self, batch: pa.RecordBatch, row_ids: Ints) -> Encoded:
        """Encode a batch that holds at least the layout's stored columns."""
        label = labels(
            batch.column(self._label.column), self._label, self._types[self._label.column]
        )
        layout = self._layout
        dense = {name: self._dense(batch, name) for name in layout.dense}
        lists = {column.name: self._list(batch, column.name) for column in layout.lists}
        columns = [
            pa.array(row_ids),
            pa.array(event_ids([self._typed(batch, name) for name in self._event_id])),
            pa.array(label),
            *map(pa.array, dense.values()),
            *(pa.array(self._single(batch, column.name)) for column in layout.ids),
            *lists.values(),
        ]
        served = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return Encoded(served, np.isnan(label), _not_finite(dense) | _too_long(lists))

    def _typed(self, batch: pa.RecordBatch, column: str) -> tuple[pa.Array, ColumnType]:
        return batch.column(column), self._types[column]

    def _input(self, batch: pa.RecordBatch, feature: str) -> tuple[pa.Array, ColumnType]:
        spec = self._layout.specs[feature]
        values, kind = self._typed(batch, self._layout.columns_of(feature)[0])
        if not isinstance(spec, CrossFeature) and spec.part is not None:
            return time_part(values, spec.part), ColumnType.INT
        return values, kind

    def _dense(self, batch: pa.RecordBatch, feature: str) -> npt.NDArray[np.float32]:
        spec = self._layout.specs[feature]
        if not isinstance(spec, NumericFeature):
            raise TypeError(f"feature {feature!r} is not numeric")
        return scaled(numbers(*self._input(batch, feature)), spec)

    def _single(self, batch: pa.RecordBatch, feature: str) -> Ints:
        spec = self._layout.specs[feature]
        if isinstance(spec, CrossFeature):
            joined = joined_texts([self._typed(batch, column) for column in spec.columns])
            return _once_for_each(joined, lambda distinct: buckets_of(distinct, spec.buckets))
        return ids(spec, *self._input(batch, feature))

    def _list(self, batch: pa.RecordBatch, feature: str) -> pa.Array:
        lists, kind = self._input(batch, feature)
        found = ids(self._layout.specs[feature], lists.flatten(), LIST_ITEMS[kind])
        owners = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
        # Null items are left out: the SavedModel pads its lists with nulls.
        known = found != 0
        lengths = np.bincount(owners[known], minlength=len(lists))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, found[known])


def _not_finite(dense: Mapping[str, npt.NDArray[np.float32]]) -> dict[int, str]:
    """Rows with a number that would make the whole model infinite, by the first such feature."""
    found: dict[int, str] = {}
    for name, values in dense.items():
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            found.setdefault(row, f"feature {name!r} is not finite")
    return found


def _too_long(lists: Mapping[str, pa.Array]) -> dict[int, str]:
    """Rows with a list that would make a minibatch of any size."""
    found: dict[int, str] = {}
    for name, values in lists.items():
        lengths = np.diff(values.offsets.to_numpy())
        for row in np.flatnonzero(lengths > LIST_ITEMS_MAX).tolist():
            found[row] = (
                f"feature {name!r} has {lengths[row]:,} items, and at most {LIST_ITEMS_MAX:,} of "
                "one row are learnt from"
            )
    return found


def scaled(values: Floats, spec: NumericFeature) -> npt.NDArray[np.float32]:
    """Transform, mean and scale in double, then float32. log1p takes values below 0 as 0."""
    known = np.log1p(np.maximum(values, 0.0)) if spec.transform == "log1p" else values
    found = (known - spec.mean) / spec.scale
    found[np.isnan(values)] = spec.missing
    with np.errstate(over="ignore"):  # beyond float32 is infinite, as a TensorFlow cast does it
        return found.astype(np.float32)


def ids(spec: FeatureSpec, values: pa.Array, kind: ColumnType) -> Ints:
    """The id of each value of a flat array; 0 is null in every encoding."""
    if isinstance(spec, BucketiseFeature):
        return _bucket(numbers(values, kind), spec.boundaries)
    if isinstance(spec, HashFeature):
        return _once_for_each(
            values, lambda distinct: buckets_of(texts(distinct, kind), spec.buckets)
        )
    if isinstance(spec, VocabularyFeature):
        known = pa.array([str(value) for value in spec.values], pa.string())
        return _once_for_each(values, lambda distinct: _positions(texts(distinct, kind), known))
    raise TypeError(f"{spec.encode} makes no ids from one column")


def _bucket(values: Floats, boundaries: list[float]) -> Ints:
    found = 1 + np.searchsorted(np.array(boundaries), values, side="right").astype(np.int64)
    found[np.isnan(values)] = 0
    return found


def _positions(values: pa.Array, known: pa.Array) -> Ints:
    places = pc.index_in(values, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
    found: Ints = places.astype(np.int64) + 2
    if values.null_count:
        found[null_mask(values)] = 0
    return found


def _once_for_each(values: pa.Array, encode: Callable[[pa.Array], Ints]) -> Ints:
    """Encode distinct values only; null gets 0."""
    coded = values.dictionary_encode()
    places = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
    table = np.zeros(len(coded.dictionary) + 1, np.int64)
    table[:-1] = encode(coded.dictionary)
    found: Ints = table[places]
    return found


def to_minibatch(
    batch: pa.RecordBatch,
    segments: Sequence[tuple[int, int]],
    feed: Feed,
    layout: FeatureLayout,
) -> Minibatch:
    """Arrays of one step from served rows; `segments` are (source index, rows) in row order."""
    rows = batch.num_rows
    sources = [source for source, _ in segments]
    counts = [count for _, count in segments]
    if sum(counts) != rows:
        raise ValueError(f"segments name {sum(counts)} rows, the batch holds {rows}")
    columns = batch.columns[FIRST_FEATURE:]
    dense_end = len(layout.dense)
    ids_end = dense_end + len(layout.ids)
    dense = np.empty((rows, dense_end), np.float32)
    for place, column in enumerate(columns[:dense_end]):
        dense[:, place] = column.to_numpy()
    found = np.empty((rows, len(layout.ids)), np.int64)
    for place, column in enumerate(columns[dense_end:ids_end]):
        found[:, place] = column.to_numpy()
    return Minibatch(
        feed=feed,
        row_ids=batch.column(0).to_numpy(),
        event_ids=batch.column(1).to_numpy(),
        sources=np.repeat(np.array(sources, np.int32), counts),
        labels=batch.column(2).to_numpy(),
        dense=dense,
        ids=found,
        lists=tuple(_list_arrays(column) for column in columns[ids_end:]),
    )


def _list_arrays(column: pa.Array) -> tuple[Ints, Ints]:
    offsets = column.offsets.to_numpy().astype(np.int64)
    # A slice keeps its parent's offsets: only the values between them belong to it.
    values = column.values.to_numpy()[offsets[0] : offsets[-1]]
    return offsets - offsets[0], values
