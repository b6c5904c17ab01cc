"""Encoder: stored columns to the numbers that a model reads, a whole batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from forebay.config.column_fit import label_misfits
from forebay.config.datasets import DatasetSpec, Feed
from forebay.config.sources import ColumnType, SourceSpec
from forebay.errors import ConfigError
from forebay.mixture.features import bad_rows
from forebay.mixture.features.bad_rows import BadRows
from forebay.mixture.features.feature_rows import FeatureRows, encode_rows, event_ids
from forebay.mixture.features.labels import labels
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.plans import Plans
from forebay.mixture.features.served import served_schema
from forebay.mixture.features.served_times import NO_TIMES, ServedTimes
from forebay.mixture.features.times import (
    Seconds,
    instants,
    nothing,
    seconds_between,
    unknown,
)
from forebay.mixture.features.values import INT_NULL, Ints, Mask
from forebay.mixture.kernels import codes
from forebay.mixture.kernels.arrow_columns import ColumnTable
from forebay.mixture.kernels.library import kernels


@dataclass(frozen=True)
class Encoded:
    """A batch in the served schema, and which of its rows are not to be learnt.

    null_label: rows without a label. bad: other rows that cannot be learnt, and why. not_known:
    rows whose label was not known yet when the run's window ended; None where all were.
    """

    batch: pa.RecordBatch
    null_label: Mask
    bad: Mapping[int, str] = field(default_factory=dict)
    not_known: Mask | None = None


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
        self._known_at = dataset.label.known_at if feed == "batch" else None
        self._times, self._feed = times, feed
        needs_time = times.event_times or self._known_at is not None
        self._event_time = source.event_time if needs_time else None
        added = [each for each in (self._event_time, self._known_at) if each is not None]
        self.columns = tuple(dict.fromkeys([*layout.stored_columns, *added]))
        for column in self.columns:
            if column not in source.columns:
                raise ConfigError(f"source {source.name!r} declares no column {column!r}")
        for misfit in label_misfits(dataset.label, source.columns[dataset.label.column]):
            raise ConfigError(f"source {source.name!r}: {misfit.message}")
        self._label = dataset.label
        self._event_id = dataset.event_id_columns
        self._layout = layout
        self._types = source.columns
        self._schema = served_schema(layout, times)
        self._read = {name: source.columns[name] for name in layout.types}
        self._plans = Plans(layout, list(self._read))
        self._table = ColumnTable(list(self._read.items()))

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
        entries = kernels()
        encoded = encode_rows(entries, self._table.views(entries, batch), self._plans)
        identity = [self._typed(batch, name) for name in self._event_id]
        stored, kind = self._typed(batch, self._label.column)
        label = labels(stored, self._label, kind)
        bad, layout = BadRows(), self._layout
        bad_rows.check_ids(bad, identity)
        if encoded.may_hold(codes.MAYBE_NOT_STORED_FINITE):
            bad_rows.check_stored(bad, batch, self._read)
        bad_rows.check_labels(bad, stored, self._label, kind)
        happened = self._instants(batch, self._event_time)
        known = self._instants(batch, self._known_at)
        bad_rows.check_known(bad, known, happened)
        lists = {each.name: found for each, found in zip(layout.lists, encoded.lists, strict=True)}
        bad_rows.check_lists(bad, lists)
        if encoded.may_hold(codes.NOT_ENCODED_FINITE):
            self._check_encoded(bad, batch, encoded)
        columns = [
            pa.array(row_ids),
            event_ids(identity),
            pa.array(label),
            *(pa.array(values) for values in self._served_times(happened, known, published)),
            *([encoded.dense] if layout.dense else []),
            *([encoded.ids] if layout.ids else []),
            *encoded.lists,
        ]
        served = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        not_known = None
        if self._known_at is not None and window_end is not None:
            not_known = ~unknown(known) & (known >= window_end)
        return Encoded(served, np.isnan(label), bad.reasons, not_known)

    def _check_encoded(self, bad: BadRows, batch: pa.RecordBatch, encoded: FeatureRows) -> None:
        values = encoded.dense.values.to_numpy().reshape(batch.num_rows, -1)
        for place, feature in enumerate(self._layout.dense):
            column = self._layout.columns_of(feature)[0]
            bad_rows.check_encoded(bad, feature, column, values[:, place], batch.column(column))

    def _instants(self, batch: pa.RecordBatch, column: str | None) -> Ints:
        if column is None:
            return np.full(batch.num_rows, INT_NULL)
        return instants(batch.column(column))

    def _served_times(
        self, happened: Ints, known: Ints, published: Ints | None
    ) -> Iterator[Ints | Seconds]:
        if self._times.event_times:
            yield happened
        if self._times.waits:
            if published is None or self._feed == "batch":
                yield nothing(len(happened))
            else:
                yield seconds_between(happened, published)
        if self._times.label_ages:
            yield seconds_between(happened, known)

    def _typed(self, batch: pa.RecordBatch, column: str) -> tuple[pa.Array, ColumnType]:
        return batch.column(column), self._types[column]
