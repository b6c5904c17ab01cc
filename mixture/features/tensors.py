"""The same definition as in `values.py` and `encode.py`, as TensorFlow operations.

Inputs of the SavedModel, one for each stored column that a feature reads: string as text, bool
as the text `true` or `false`, int as int64, timestamp as int64 microseconds since 1970 UTC,
float as float64; [N] for one value, [N, L] for lists, padded with null to one length. Null is:
the empty text, the smallest int64, NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from forebay.config.specs.features import (
    BucketiseFeature,
    CrossFeature,
    FeatureSpec,
    HashFeature,
    NumericFeature,
    TimePart,
    VocabularyFeature,
)
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.values import (
    DAY,
    FIRST_WEEKDAY,
    FLOAT_TINY,
    HOUR,
    INT_NULL,
    MICROSECONDS,
    TEXT_SEPARATOR,
)

RaggedIds = tuple[tf.Tensor, tf.Tensor]
TENSOR_TYPES = {
    ColumnType.STRING: tf.string,
    ColumnType.BOOL: tf.string,
    ColumnType.INT: tf.int64,
    ColumnType.TIMESTAMP: tf.int64,
    ColumnType.FLOAT: tf.float64,
}


def input_spec(kind: ColumnType, name: str) -> tf.TensorSpec:
    if kind in LIST_ITEMS:
        return tf.TensorSpec([None, None], TENSOR_TYPES[LIST_ITEMS[kind]], name)
    return tf.TensorSpec([None], TENSOR_TYPES[kind], name)


def null_of(values: tf.Tensor, kind: ColumnType) -> tf.Tensor:
    if kind is ColumnType.FLOAT:
        return tf.math.is_nan(values)
    if TENSOR_TYPES[kind] is tf.string:
        return tf.equal(values, "")
    return tf.equal(values, tf.constant(INT_NULL, tf.int64))


def text_of(values: tf.Tensor, kind: ColumnType) -> tf.Tensor:
    """Each value's text; empty where the value is null. No feature reads the text of a float."""
    if TENSOR_TYPES[kind] is tf.string:
        return values
    return tf.where(null_of(values, kind), "", tf.strings.as_string(values))


def number_of(values: tf.Tensor, kind: ColumnType) -> tf.Tensor:
    """Each value as a double; NaN where the value is null."""
    if kind is ColumnType.FLOAT:
        return tf.where(tf.abs(values) < FLOAT_TINY, tf.zeros([], tf.float64), values)
    if kind is ColumnType.BOOL:
        known = tf.cast(tf.equal(values, "true"), tf.float64)
    else:
        known = tf.cast(values, tf.float64)
    if kind is ColumnType.TIMESTAMP:
        known /= MICROSECONDS
    return tf.where(null_of(values, kind), tf.constant(float("nan"), tf.float64), known)


def part_of(values: tf.Tensor, part: TimePart) -> tf.Tensor:
    """Hour or weekday in UTC; null stays null."""
    if part == "hour":
        found = tf.math.floormod(tf.math.floordiv(values, HOUR), 24)
    else:
        found = tf.math.floormod(tf.math.floordiv(values, DAY) + FIRST_WEEKDAY, 7)
    return tf.where(null_of(values, ColumnType.TIMESTAMP), values, found)


class RawEncoder:
    """From raw columns to dense, ids and lists in layout order."""

    def __init__(self, layout: FeatureLayout) -> None:
        """Create the lookup tables of vocabularies; the saved object must track them."""
        self._layout = layout
        self.vocabularies = {
            name: _lookup_table(spec)
            for name, spec in layout.specs.items()
            if isinstance(spec, VocabularyFeature)
        }

    def encode(
        self, raw: Mapping[str, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor, tuple[RaggedIds, ...]]:
        layout = self._layout
        count = tf.shape(next(iter(raw.values())))[0]
        dense = [self._dense(raw, name) for name in layout.dense]
        ids = [self._single(raw, column.name) for column in layout.ids]
        return (
            tf.stack(dense, axis=1) if dense else tf.zeros([count, 0]),
            tf.stack(ids, axis=1) if ids else tf.zeros([count, 0], tf.int64),
            tuple(self._list(raw, column.name) for column in layout.lists),
        )

    def _input(self, raw: Mapping[str, tf.Tensor], feature: str) -> tuple[tf.Tensor, ColumnType]:
        column = self._layout.columns_of(feature)[0]
        spec, kind = self._layout.specs[feature], self._layout.types[column]
        if not isinstance(spec, CrossFeature) and spec.part is not None:
            return part_of(raw[column], spec.part), ColumnType.INT
        return raw[column], LIST_ITEMS.get(kind, kind)

    def _dense(self, raw: Mapping[str, tf.Tensor], feature: str) -> tf.Tensor:
        spec = self._layout.specs[feature]
        if not isinstance(spec, NumericFeature):
            raise TypeError(f"feature {feature!r} is not numeric")
        values = number_of(*self._input(raw, feature))
        log = spec.transform == "log1p"
        known = tf.math.log1p(tf.maximum(values, 0.0)) if log else values
        found = (known - spec.mean) / spec.scale
        missing = tf.constant(spec.missing, tf.float64)
        return tf.cast(tf.where(tf.math.is_nan(values), missing, found), tf.float32)

    def _single(self, raw: Mapping[str, tf.Tensor], feature: str) -> tf.Tensor:
        spec = self._layout.specs[feature]
        if isinstance(spec, CrossFeature):
            parts = [text_of(raw[c], self._layout.types[c]) for c in spec.columns]
            joined = tf.strings.join(parts, TEXT_SEPARATOR)
            return tf.strings.to_hash_bucket_fast(joined, spec.buckets - 1) + 1
        return self._ids(feature, spec, *self._input(raw, feature))

    def _list(self, raw: Mapping[str, tf.Tensor], feature: str) -> RaggedIds:
        padded = self._ids(feature, self._layout.specs[feature], *self._input(raw, feature))
        known = tf.not_equal(padded, 0)
        lengths = tf.reduce_sum(tf.cast(known, tf.int64), axis=1)
        splits = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(lengths)], axis=0)
        return splits, tf.boolean_mask(padded, known)

    def _ids(
        self, feature: str, spec: FeatureSpec, values: tf.Tensor, kind: ColumnType
    ) -> tf.Tensor:
        if isinstance(spec, BucketiseFeature):
            boundaries = tf.constant(spec.boundaries, tf.float64)
            flat = tf.reshape(number_of(values, kind), [-1])
            found = 1 + tf.searchsorted(boundaries, flat, side="right", out_type=tf.int64)
            found = tf.reshape(found, tf.shape(values))
        elif isinstance(spec, HashFeature):
            found = 1 + tf.strings.to_hash_bucket_fast(text_of(values, kind), spec.buckets - 1)
        else:
            found = self.vocabularies[feature].lookup(text_of(values, kind))
        return tf.where(null_of(values, kind), tf.zeros([], tf.int64), found)


def _lookup_table(spec: VocabularyFeature) -> tf.lookup.StaticHashTable:
    keys = tf.constant([str(value) for value in spec.values], tf.string)
    places = tf.range(2, 2 + len(spec.values), dtype=tf.int64)
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, places), default_value=1
    )
