"""Encoder: stored columns to the numbers that a model reads, a whole batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from forebay.config.labels import LabelSpec
from forebay.config.sources import LIST_ITEMS, ColumnType, SourceSpec
from forebay.errors import ConfigError
from forebay.mixture.features import bad_rows
from forebay.mixture.features.bad_rows import BadRows
from forebay.mixture.features.fingerprint import buckets_of, event_ids, joined_texts
from forebay.mixture.features.labels import labels
from forebay.mixture.features.layout import FeatureLayout, IdColumn
from forebay.mixture.features.served_times import NO_TIMES, ServedTimes
from forebay.mixture.features.times import (
    Seconds,
    instants,
    nothing,
    seconds_between,
    unknown,
)
from forebay.mixture.features.values import (
    INT_NULL,
    Floats,
    Ints,
    Mask,
    null_mask,
    numbers,
    texts,
    time_part,
)
from forebay.mixture.minibatch import LabelRows, Minibatch

Labels = npt.NDArray[np.float32]
FEATURE_PREFIX = "feature."  # so that no feature is mistaken for another column
_EVENT_TIME, _WAIT, _LABEL, _LABEL_AGE = "event_time", "wait", "label", "label_age"


@dataclass(frozen=True)
class Encoded:
    """A batch in the served schema, and which of its rows are not to be learnt.

    null_label: rows without any label. bad: other rows that cannot be learnt, and why. not_known:
    rows none of whose labels was known yet when the run's window ended; None where all were.
    """

    batch: pa.RecordBatch
    null_label: Mask
    bad: Mapping[int, str] = field(default_factory=dict)
    not_known: Mask | None = None


def served_schema(layout: FeatureLayout, times: ServedTimes = NO_TIMES) -> pa.Schema:
    """What executors serve: row_id, event_id, labels, times, then each feature in layout order."""
    names = ["", *layout.further_labels]
    fields = [
        pa.field("row_id", pa.int64()),
        pa.field("event_id", pa.int64()),
        *(pa.field(_of_label(_LABEL, name), pa.float32()) for name in names),
        *([pa.field(_EVENT_TIME, pa.int64())] if times.event_times else []),
        *([pa.field(_WAIT, pa.float32())] if times.waits else []),
        *(pa.field(_of_label(_LABEL_AGE, name), pa.float32()) for name in names * times.label_ages),
        *(pa.field(FEATURE_PREFIX + name, pa.float32()) for name in layout.dense),
        *(pa.field(FEATURE_PREFIX + column.name, pa.int64()) for column in layout.ids),
        *(pa.field(FEATURE_PREFIX + column.name, pa.list_(pa.int64())) for column in layout.lists),
    ]
    return pa.schema(fields)


class Encoder:
    """Encodes batches of one source. Safe for use from several threads."""

    def __init__(
        self,
        dataset: DatasetSpec,
        source: SourceSpec,
        layout: FeatureLayout,
        times: ServedTimes = NO_TIMES,
        feed: Feed = "stream",
    ) -> None:
        """Check that the source declares every column that is needed.

        times: which are served. feed: of the source.

        Raises:
            ConfigError: for a missing column, or a label rule that does not fit its type.
        """
        self._labels = list(dataset.targets.values())
        self._known_at = [each.known_at if feed == "batch" else None for each in self._labels]
        self._times, self._feed = times, feed
        needs_time = times.event_times or any(self._known_at)
        self._event_time = source.event_time if needs_time else None
        added = [each for each in (self._event_time, *self._known_at) if each is not None]
        self.columns = tuple(dict.fromkeys([*layout.stored_columns, *added]))
        for column in self.columns:
            if column not in source.columns:
                raise ConfigError(f"source {source.name!r} declares no column {column!r}")
        for label in self._labels:
            for misfit in label_misfits(label, source.columns[label.column]):
                raise ConfigError(f"source {source.name!r}: {misfit.message}")
        self._event_id = dataset.event_id_columns
        self._layout = layout
        self._types = source.columns
        self._schema = served_schema(layout, times)
        self._read = {name: source.columns[name] for name in layout.types}

    def encode(
        self,
        batch: pa.RecordBatch,
        row_ids: Ints,
        published: Ints | None = None,
        window_end: int | None = None,
    ) -> Encoded:
        """Encode a batch that holds at least `columns`.

        published: when each row became readable in its stream. window_end: of the run, which
        counts no label that was known later; None where there is no run. Both in microseconds
        since 1970 UTC.
        """
        stored = [self._typed(batch, each.column) for each in self._labels]
        said = [labels(*one) for one in _ruled(stored, self._labels)]
        identity = [self._typed(batch, name) for name in self._event_id]
        bad, layout = BadRows(), self._layout
        bad_rows.check_ids(bad, identity)
        bad_rows.check_stored(bad, batch, self._read)
        for values, rule, kind in _ruled(stored, self._labels):
            bad_rows.check_labels(bad, values, rule, kind)
        happened = self._instants(batch, self._event_time)
        known = [self._instants(batch, each) for each in self._known_at]
        for each in known:
            bad_rows.check_known(bad, each, happened)
        lists = {column.name: self._list(batch, column.name) for column in layout.lists}
        bad_rows.check_lists(bad, lists)
        in_time, not_known = self._in_time(said, known, window_end)
        columns = [
            pa.array(row_ids),
            pa.array(event_ids(identity)),
            *(pa.array(values) for values in in_time),
            *(pa.array(values) for values in self._served_times(happened, known, published)),
            *(pa.array(self._dense(batch, name, bad)) for name in layout.dense),
            *(pa.array(self._single(batch, column.name)) for column in layout.ids),
            *lists.values(),
        ]
        served = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        null = np.asarray(np.isnan(said).all(axis=0), np.bool_)
        return Encoded(served, null, bad.reasons, not_known)

    def _in_time(
        self, said: Sequence[Labels], known: Sequence[Ints], window_end: int | None
    ) -> tuple[Sequence[Labels], Mask | None]:
        """Labels without those that were known too late, and the rows that have none for that."""
        if window_end is None or not any(self._known_at):
            return said, None
        late = [~unknown(each) & (each >= window_end) for each in known]
        found = [
            np.where(each, np.float32(np.nan), values)
            for each, values in zip(late, said, strict=True)
        ]
        none = np.logical_and.reduce([np.isnan(values) for values in found])
        return found, np.asarray(none & np.logical_or.reduce(late), np.bool_)

    def _instants(self, batch: pa.RecordBatch, column: str | None) -> Ints:
        if column is None:
            return np.full(batch.num_rows, INT_NULL)
        return instants(batch.column(column))

    def _served_times(
        self, happened: Ints, known: Sequence[Ints], published: Ints | None
    ) -> Iterator[Ints | Seconds]:
        if self._times.event_times:
            yield happened
        if self._times.waits:
            if published is None or self._feed == "batch":
                yield nothing(len(happened))
            else:
                yield seconds_between(happened, published)
        if self._times.label_ages:
            yield from (seconds_between(happened, each) for each in known)

    def _typed(self, batch: pa.RecordBatch, column: str) -> tuple[pa.Array, ColumnType]:
        return batch.column(column), self._types[column]

    def _input(self, batch: pa.RecordBatch, feature: str) -> tuple[pa.Array, ColumnType]:
        spec = self._layout.specs[feature]
        values, kind = self._typed(batch, self._layout.columns_of(feature)[0])
        if not isinstance(spec, CrossFeature) and spec.part is not None:
            return time_part(values, spec.part), ColumnType.INT
        return values, kind

    def _dense(self, batch: pa.RecordBatch, feature: str, bad: BadRows) -> npt.NDArray[np.float32]:
        spec = self._layout.specs[feature]
        if not isinstance(spec, NumericFeature):
            raise TypeError(f"feature {feature!r} is not numeric")
        found = scaled(numbers(*self._input(batch, feature)), spec)
        column = self._layout.columns_of(feature)[0]
        bad_rows.check_encoded(bad, feature, column, found, batch.column(column))
        return found

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
    """Arrays of one step from served rows; `segments` are (source index, rows) in row order.

    Raises:
        ValueError: when segments do not fit, or an id is none that its feature can have.
    """
    rows = batch.num_rows
    sources = [source for source, _ in segments]
    counts = [count for _, count in segments]
    if sum(counts) != rows:
        raise ValueError(f"segments name {sum(counts)} rows, the batch holds {rows}")
    columns = batch.columns[batch.num_columns - len(layout.names) :]
    dense_end = len(layout.dense)
    ids_end = dense_end + len(layout.ids)
    dense = np.empty((rows, dense_end), np.float32)
    for place, column in enumerate(columns[:dense_end]):
        dense[:, place] = column.to_numpy()
    found = np.empty((rows, len(layout.ids)), np.int64)
    for place, column in enumerate(columns[dense_end:ids_end]):
        found[:, place] = column.to_numpy()
    lists = tuple(_list_arrays(column) for column in columns[ids_end:])
    for place, id_column in enumerate(layout.ids):
        _require_range(found[:, place], id_column)
    for (_, values), id_column in zip(lists, layout.lists, strict=True):
        _require_range(values, id_column)
    return Minibatch(
        feed=feed,
        row_ids=batch.column(0).to_numpy(),
        event_ids=batch.column(1).to_numpy(),
        sources=np.repeat(np.array(sources, np.int32), counts),
        labels=batch.column(2).to_numpy(),
        dense=dense,
        ids=found,
        lists=lists,
        event_times=_optional(batch, _EVENT_TIME),
        waits=_optional(batch, _WAIT),
        label_ages=_optional(batch, _LABEL_AGE),
        further=tuple(_label_rows(batch, name) for name in layout.further_labels),
    )


def _label_rows(batch: pa.RecordBatch, name: str) -> LabelRows:
    values = batch.column(_of_label(_LABEL, name)).to_numpy()
    return LabelRows(values, _optional(batch, _of_label(_LABEL_AGE, name)))


def _of_label(column: str, name: str) -> str:
    return f"{column}:{name}" if name else column


def _ruled(
    stored: Sequence[tuple[pa.Array, ColumnType]], rules: Sequence[LabelSpec]
) -> Iterator[tuple[pa.Array, LabelSpec, ColumnType]]:
    """Values of each label with the rule that they are judged by."""
    for (values, kind), rule in zip(stored, rules, strict=True):
        yield values, rule, kind


def _optional(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any] | None:
    place = batch.schema.get_field_index(name)
    return None if place < 0 else batch.column(place).to_numpy()


def _require_range(found: Ints, column: IdColumn) -> None:
    """Its table has no row for any other id, and TensorFlow on a GPU would make one up."""
    # Negative ids are the largest of all as unsigned ones.
    if len(found) and found.view(np.uint64).max() >= column.cardinality:
        outside = found[(found < 0) | (found >= column.cardinality)][0]
        raise ValueError(
            f"feature {column.name!r}: id {outside} is outside of 0 to {column.cardinality - 1}"
        )


def _list_arrays(column: pa.Array) -> tuple[Ints, Ints]:
    offsets = column.offsets.to_numpy().astype(np.int64)
    # A slice keeps its parent's offsets: only the values between them belong to it.
    values = column.values.to_numpy()[offsets[0] : offsets[-1]]
    return offsets - offsets[0], values
