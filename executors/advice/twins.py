"""Twins: batch rows about the same events as sampled stream rows, and what they say about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.look.sampling import SampleLimits, sample_rows
from forebay.datatasks.sources.common.values.times import HOUR_US, UNKNOWN, times_of
from forebay.executors.advice.samples import (
    LONGEST,
    SPANS,
    SourceSample,
    opened_for_sample,
    with_times,
)
from forebay.mixture.advice.completeness import (
    Completeness,
    CompleteRows,
    FreshRows,
    measure_completeness,
)
from forebay.mixture.features.feature_rows import event_ids
from forebay.mixture.features.labels import labels
from forebay.system.instants import from_us, to_us

ROWS_MAX = 100_000
# Only ids, labels and times are read, and only of rows in the spans.
READ_ROWS_MAX = 20_000_000
READ_BYTES_MAX = 2 << 30
SECONDS_MAX = 15.0
_SECOND_US = 1_000_000

Times = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    spec: SourceSpec
    table: pa.Table


def completeness_by_label(
    dataset: DatasetSpec, sampled: Mapping[str, SourceSample], root: Path
) -> dict[str, dict[str, Completeness]]:
    """How complete each label is in each source that feeds `stream`, by label and by name.

    Raises:
        ForebayError: when a source does not answer, or holds data that cannot be read.
    """
    batch = [each for each in sampled.values() if each.feed == "batch"]
    labels = ["", *dataset.further_labels]
    found: dict[str, dict[str, Completeness]] = {label: {} for label in labels}
    for name, each in sampled.items():
        if each.feed == "stream":
            twins = list(_twins(dataset, each, batch, root))
            for label in labels:
                found[label][name] = measure_completeness(
                    fresh_rows(dataset, each, label), complete_rows(dataset, twins, label)
                )
    return found


def fresh_rows(dataset: DatasetSpec, fresh: SourceSample, label: str = "") -> FreshRows:
    """Sampled rows of a stream as arrays, by publication; each part of the time span is a group."""
    rows, published = Rows(fresh.spec, fresh.sample.table), fresh.sample.times_us
    happened = _event_times(rows)
    waits = np.full(len(published), np.nan, np.float32)
    if not kind_named(fresh.spec.kind).bounded:  # bounded kinds are cut by event time
        known = happened != UNKNOWN
        waits[known] = np.maximum(published[known] - happened[known], 0) / _SECOND_US
    start, end = to_us(fresh.over.start), to_us(fresh.over.end)
    groups = np.clip((published - start) * SPANS // max(end - start, 1), 0, SPANS - 1)
    order = np.argsort(published, kind="stable")
    return FreshRows(
        event_ids=_ids(dataset, rows)[order],
        labels=_labels(dataset, rows, label)[order],
        waits=waits[order],
        groups=groups[order].astype(np.int32),
    )


def complete_rows(dataset: DatasetSpec, twins: Sequence[Rows], label: str = "") -> CompleteRows:
    none = np.zeros(0, np.float32)
    return CompleteRows(
        event_ids=np.concatenate([np.zeros(0, np.int64), *(_ids(dataset, one) for one in twins)]),
        labels=np.concatenate([none, *(_labels(dataset, one, label) for one in twins)]),
        delays=np.concatenate([none, *(_delays(dataset, one, label) for one in twins)]),
    )


def _twins(
    dataset: DatasetSpec, fresh: SourceSample, batch: Sequence[SourceSample], root: Path
) -> Iterator[Rows]:
    first = dataset.event_id_columns[0]
    values = pc.unique(fresh.sample.table.column(first))

    def keep(found: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        return np.asarray(pc.is_in(found.column(first), value_set=values))

    answers = [label.column for label in dataset.targets.values()]
    needed = dict.fromkeys([*dataset.event_id_columns, *answers])
    for other in batch:
        spans = twin_spans(dataset, fresh, other, datetime.now(UTC))
        if spans:
            columns = with_times(other.spec, dataset, list(needed))
            limits = SampleLimits(READ_ROWS_MAX, READ_BYTES_MAX, SECONDS_MAX)
            with closing(opened_for_sample(other.spec, root)) as source:
                sample = sample_rows(source, spans, columns, limits, ROWS_MAX, keep)
            yield Rows(other.spec, sample.table)


def twin_spans(
    dataset: DatasetSpec, fresh: SourceSample, other: SourceSample, now: datetime
) -> list[Interval]:
    """Windows in which the events of sampled rows may have happened, disjoint and ascending.

    For a stream without event times, they are looked for before the publication, as far back as
    the labels of batch rows take; events whose label may still change are left out.
    """
    happened = _event_times(Rows(fresh.spec, fresh.sample.table))
    back = timedelta(0)
    if (happened == UNKNOWN).all():
        happened = fresh.sample.times_us
        window = dataset.grid.at(fresh.over.start)
        joined = (dataset.label_joined_within(label) for label in dataset.targets)
        back = max(*joined, other.offset, window.end - window.start)
    since, until = to_us(fresh.over.start - LONGEST), to_us(fresh.over.end)
    hours = np.unique(happened[(happened >= since) & (happened < until)] // HOUR_US) * HOUR_US
    touched: list[Interval] = []
    for hour in hours:
        at = from_us(int(hour))
        start, end = dataset.grid.at(at - back).start, dataset.grid.at(at).end
        if touched and start <= touched[-1].end:
            start, end = touched[-1].start, max(end, touched[-1].end)
            touched.pop()
        touched.append(Interval(start, end))
    complete = min(other.over.end, now - other.offset)
    clipped = (each.clipped(other.over.start, complete) for each in touched)
    return [each for each in clipped if each is not None]


def _event_times(rows: Rows) -> Times:
    """Microseconds since 1970 UTC of each row's event; UNKNOWN where it is null or not declared."""
    if rows.spec.event_time is None:
        return np.full(rows.table.num_rows, UNKNOWN, np.int64)
    return times_of(_column(rows, rows.spec.event_time))


def _delays(dataset: DatasetSpec, rows: Rows, label: str) -> Floats:
    found = np.full(rows.table.num_rows, np.nan, np.float32)
    column = dataset.label_named(label).known_at
    if column is None or column not in rows.table.column_names:
        return found
    happened, known = _event_times(rows), times_of(_column(rows, column))
    said = (happened != UNKNOWN) & (known != UNKNOWN)
    found[said] = (known[said] - happened[said]) / _SECOND_US
    return found


def _ids(dataset: DatasetSpec, rows: Rows) -> npt.NDArray[np.int64]:
    columns = dataset.event_id_columns
    found = event_ids([(_column(rows, name), rows.spec.columns[name]) for name in columns])
    return np.asarray(found.to_numpy())


def _labels(dataset: DatasetSpec, rows: Rows, label: str) -> Floats:
    rule = dataset.label_named(label)
    return labels(_column(rows, rule.column), rule, rows.spec.columns[rule.column])


def _column(rows: Rows, name: str) -> pa.Array:
    return rows.table.column(name).combine_chunks()
