"""The label rule: from a stored column to 0, 1, or NaN where the label is null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.sources import ColumnType
from forebay.mixture.features.values import Mask, null_as_null, null_mask, numbers, texts

Value = bool | int | float | str


def labels(values: pa.Array, rule: LabelSpec, kind: ColumnType) -> npt.NDArray[np.float32]:
    """1 for positive, 0 for negative, NaN for null. The rule must fit the type."""
    known = null_as_null(values, kind)
    found = _positive(values, rule, kind).astype(np.float32)
    if known.null_count:
        found[null_mask(known)] = np.nan
    return found


def _positive(values: pa.Array, rule: LabelSpec, kind: ColumnType) -> Mask:
    if rule.positive is not None:
        positives = rule.positive if isinstance(rule.positive, list) else [rule.positive]
        return among(values, positives, kind)
    is_plain = kind is ColumnType.INT and not values.null_count  # whole numbers in memory
    if rule.greater_than is None and rule.less_than is None and is_plain:
        return np.asarray(np.not_equal(values.to_numpy(), 0), np.bool_)
    known = numbers(values, kind)
    if rule.greater_than is not None:
        return np.greater(known, rule.greater_than)
    if rule.less_than is not None:
        return np.less(known, rule.less_than)
    return np.not_equal(known, 0)


def among(values: pa.Array, listed: Sequence[Value], kind: ColumnType) -> Mask:
    """Where a value is one of those that are listed. The result for nulls is undefined."""
    if kind is ColumnType.STRING:
        wanted = pa.array([str(value) for value in listed], pa.string())
        found = pc.is_in(texts(values, kind), value_set=wanted)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
    exact = [value for value in listed if not isinstance(value, str)]
    if kind is ColumnType.INT:
        # Whole numbers are compared as int64: a double would merge neighbours beyond 2**53.
        whole = [int(n) for n in exact if -(2**63) <= n < 2**63 and n == int(n)]
        known = values.fill_null(0).to_numpy(zero_copy_only=False)
        return np.isin(known, np.array(whole, np.int64))
    return np.isin(numbers(values, kind), np.array(exact, np.float64))
