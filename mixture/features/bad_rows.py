"""Rows that can be decoded but not trained on: which ones, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.labels import LabelSpec, LabelValues
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.mixture.features.labels import Value, among
from forebay.mixture.features.values import Ints, Mask, null_as_null, null_mask, unknown
from forebay.mixture.kernels.codes import NUMBER_MAX

NO_ID = "the event has no id"
KNOWN_BEFORE = "its label was known before the event"
# A minibatch has a fixed number of rows, however large each is: for 1,024 rows, these items take
# half a gigabyte.
LIST_ITEMS_MAX = 65_536


class BadRows:
    """Bad rows of one batch, by index, with the first reason that was found for each."""

    def __init__(self) -> None:
        self.reasons: dict[int, str] = {}

    def add(self, bad: Mask, reason: str) -> None:
        for row in np.flatnonzero(bad).tolist():
            self.reasons.setdefault(row, reason)

    def add_each(self, bad: Mask, what: str, values: Sequence[object]) -> None:
        for row in np.flatnonzero(bad).tolist():
            self.reasons.setdefault(row, f"{what} is {values[row]}")


def check_ids(found: BadRows, columns: Sequence[tuple[pa.Array, ColumnType]]) -> None:
    """Find rows in which all columns of the event's identity are null."""
    known = [null_as_null(values, kind) for values, kind in columns]
    if all(values.null_count for values in known):
        found.add(np.logical_and.reduce([null_mask(values) for values in known]), NO_ID)


def check_stored(found: BadRows, batch: pa.RecordBatch, columns: Mapping[str, ColumnType]) -> None:
    """Find rows with NaN or an infinite number in a column that features read."""
    for name, kind in columns.items():
        if kind is ColumnType.FLOAT:
            bad = _not_finite(batch.column(name))
            if bad.any():
                found.add_each(bad, f"column {name!r}", batch.column(name))
        elif LIST_ITEMS.get(kind) is ColumnType.FLOAT:
            lists = batch.column(name)
            bad = _not_finite(lists.flatten())
            if bad.any():
                owners = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
                rows = np.bincount(owners[bad], minlength=len(lists)) > 0
                found.add(rows, f"column {name!r} holds NaN or an infinite number")


def check_encoded(
    found: BadRows, feature: str, column: str, values: npt.NDArray[np.float32], stored: pa.Array
) -> None:
    """Find rows whose number, transformed and scaled, is too large for a model to compute with."""
    bad = ~(np.abs(values) <= NUMBER_MAX)
    if bad.any():
        limit = f"feature {feature!r} is beyond {NUMBER_MAX:g} where column {column!r}"
        found.add_each(bad, limit, stored)


def check_lists(found: BadRows, lists: Mapping[str, pa.Array]) -> None:
    """Find rows with a list so long that a minibatch would get too large. lists: by feature."""
    for name, values in lists.items():
        lengths = np.diff(values.offsets.to_numpy())
        for row in np.flatnonzero(lengths > LIST_ITEMS_MAX).tolist():
            reason = (
                f"feature {name!r} has {lengths[row]:,} items, but a row may have at most "
                f"{LIST_ITEMS_MAX:,}"
            )
            found.reasons.setdefault(row, reason)


def check_labels(found: BadRows, stored: pa.Array, rule: LabelSpec, kind: ColumnType) -> None:
    """Find rows whose label is infinite, or not among those that `positive` and `negative` list."""
    bad = np.zeros(len(stored), np.bool_)
    if kind is ColumnType.FLOAT:
        bad = np.isinf(np.asarray(stored.to_numpy(zero_copy_only=False), np.float64))
    if rule.negative is not None and rule.positive is not None:
        domain = [*_listed(rule.positive), *_listed(rule.negative)]
        bad |= ~(among(stored, domain, kind) | null_mask(null_as_null(stored, kind)))
    if bad.any():
        found.add_each(bad, f"the label in column {rule.column!r}", stored)


def check_known(found: BadRows, known: Ints, happened: Ints) -> None:
    found.add((known < happened) & ~unknown(known), KNOWN_BEFORE)


def _not_finite(values: pa.Array) -> Mask:
    plain = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
    bad = ~np.isfinite(plain)
    return bad & ~null_mask(values) if values.null_count else bad


def _listed(values: LabelValues) -> list[Value]:
    return values if isinstance(values, list) else [values]
