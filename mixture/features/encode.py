"""Encoder: turns stored columns into the numbers that a model reads, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.checks.column_fit import label_misfits
from forebay.config.specs.datasets import DatasetSpec, Feed
from forebay.config.specs.sources import SourceSpec
from forebay.errors import ConfigError
from forebay.mixture.features import bad_rows
from forebay.mixture.features.bad_rows import BadRows
from forebay.mixture.features.feature_rows import FeatureRows, encode_rows, event_ids
from forebay.mixture.features.labels import labels
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.plans import Plans
from forebay.mixture.features.served import served_schema
from forebay.mixture.features.served_times import NO_TIMES, ServedTimes
from forebay.mixture.features.values import INT_NULL, Ints, Mask, instants, seconds_between, unknown
from forebay.mixture.kernels import codes
from forebay.mixture.kernels.arrow_columns import ColumnTable
from forebay.mixture.kernels.library import kernels

Labels = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Encoded:
    """A batch in the served schema, and which of its rows must not be trained on.

    null_label: rows without a label. bad: other rows that cannot be trained on, and why. not_known:
    rows whose label was not yet known when the run's window ended; None if all were.
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

        times: which times are served. feed: that of the source.

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
        ignores labels that were known later; None without a run. Both in microseconds since 1970
        UTC.
        """
        entries = kernels()
        encoded = encode_rows(entries, self._table.views(entries, batch), self._plans)
        types = self._types
        identity = [(batch.column(name), types[name]) for name in self._event_id]
        ruled = [(batch.column(each.column), each, types[each.column]) for each in self._labels]
        said = [labels(*one) for one in ruled]
        bad, layout = BadRows(), self._layout
        bad_rows.check_ids(bad, identity)
        if encoded.may_hold(codes.MAYBE_NOT_STORED_FINITE):
            bad_rows.check_stored(bad, batch, self._read)
        for one in ruled:
            bad_rows.check_labels(bad, *one)
        happened = self._instants(batch, self._event_time)
        known = [self._instants(batch, each) for each in self._known_at]
        for each in known:
            bad_rows.check_known(bad, each, happened)
        lists = {one.name: found for one, found in zip(layout.lists, encoded.lists, strict=True)}
        bad_rows.check_lists(bad, lists)
        if encoded.may_hold(codes.TOO_LARGE):
            self._check_encoded(bad, batch, encoded)
        in_time, not_known = self._in_time(said, known, window_end)
        columns = [
            pa.array(row_ids),
            event_ids(identity),
            *(pa.array(values) for values in in_time),
            *(pa.array(values) for values in self._served_times(happened, published)),
            *([encoded.dense] if layout.dense else []),
            *([encoded.ids] if layout.ids else []),
            *encoded.lists,
        ]
        served = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        null = np.logical_and.reduce([np.isnan(values) for values in said])
        return Encoded(served, null, bad.reasons, not_known)

    def _in_time(
        self, said: Sequence[Labels], known: Sequence[Ints], window_end: int | None
    ) -> tuple[Sequence[Labels], Mask | None]:
        """Labels without those known too late, and the rows that are left without any label."""
        if window_end is None or not any(self._known_at):
            return said, None
        late = [~unknown(each) & (each >= window_end) for each in known]
        found = [
            np.where(each, np.float32(np.nan), values)
            for each, values in zip(late, said, strict=True)
        ]
        none = np.logical_and.reduce([np.isnan(values) for values in found])
        return found, np.asarray(none & np.logical_or.reduce(late), np.bool_)

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
        self, happened: Ints, published: Ints | None
    ) -> Iterator[Ints | npt.NDArray[np.float32]]:
        if self._times.event_times:
            yield happened
        if self._times.waits:
            if published is None or self._feed == "batch":
                yield np.full(len(happened), np.nan, np.float32)
            else:
                yield seconds_between(happened, published)
