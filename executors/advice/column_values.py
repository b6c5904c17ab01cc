"""Where sampled values contradict the YAML: positives, nulls, vocabularies, crowded ids, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.checks.label_check import label_path
from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.features import HashFeature, VocabularyFeature, feature_columns
from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.config.specs.windows import Interval
from forebay.config.yaml.positions import KeyPath
from forebay.config.yaml.problems import Severity
from forebay.datatasks.look.lags import newest_problem
from forebay.datatasks.look.sampling import Sample, SampleLimits, sample_rows
from forebay.datatasks.sources.common.values.far_times import AHEAD, are_far, far_words
from forebay.datatasks.sources.common.values.times import Times, times_of
from forebay.executors.advice.samples import SECONDS_MAX, SourceSample, opened_for_sample
from forebay.mixture.features.labels import labels
from forebay.mixture.features.values import null_as_null, texts, time_part
from forebay.system.instants import to_us

NO_POSITIVES, NO_NEGATIVES = "no_positives", "no_negatives"  # as `train.accept` names them
FREQUENT = 0.01  # a vocabulary should have every value with at least this share
MOSTLY = 0.5
_SHOWN = 5
_PLAIN_LABELS = {"0", "1", "true", "false"}


@dataclass(frozen=True)
class ValueFinding:
    """Something that sampled values show. folder, name, path: the YAML key that it is about."""

    folder: Literal["sources", "pipelines"]
    name: str
    path: KeyPath
    code: str
    message: str
    severity: Severity = "note"


def value_findings(
    pipeline: str, dataset: DatasetSpec, sampled: Mapping[str, SourceSample]
) -> Iterator[ValueFinding]:
    """Findings on labels, then on features; nothing where no row was sampled."""
    # Each source once, however many streams read it: two uses of a source have the same sample.
    full = {each.spec.name: each for each in sampled.values() if each.sample.table.num_rows}
    if full:
        for label, rule in dataset.targets.items():
            yield from _positives(pipeline, label, rule, full)
        for name, each in full.items():
            yield from _nulls(name, dataset, each)
        yield from _vocabularies(pipeline, dataset, full)


def crowded_features(
    dataset: DatasetSpec, sampled: Mapping[str, SourceSample]
) -> dict[str, tuple[int, int]]:
    """Hashed features with more values in the sample than buckets: values and buckets of each."""
    found: dict[str, tuple[int, int]] = {}
    for name, feature in dataset.features.items():
        if isinstance(feature, HashFeature) and feature.part is None:
            column = feature_columns(name, feature)[0]
            values = len(_counts(column, sampled))
            if values > feature.buckets:
                found[name] = values, feature.buckets
    return found


def _positives(
    pipeline: str, label: str, rule: LabelSpec, sampled: Mapping[str, SourceSample]
) -> Iterator[ValueFinding]:
    """Finds that sampled rows are of one class, or have values that the rule is silent on."""
    rows = positive = negative = 0
    for each in sampled.values():
        values = each.sample.table.column(rule.column).combine_chunks()
        known = labels(values, rule, each.spec.columns[rule.column])
        rows, positive = rows + len(known), positive + int((known > 0.5).sum())
        negative += int((known <= 0.5).sum())
    counts = _counts(rule.column, sampled)
    keys = [
        key for key in ("positive", "greater_than", "less_than") if key in rule.model_fields_set
    ]
    path: KeyPath = (*label_path(label), *keys[:1])
    said = f"label {label!r}" if label else "label"
    if not positive:
        asked = f"{keys[0]}: {getattr(rule, keys[0])!r}" if keys else "a number other than 0"
        message = (
            f"{said}: {asked} never occurs in {rows:,} sampled rows of {', '.join(sampled)}: "
            f"column {rule.column!r} has {_listed(counts)}; a model would be trained on negatives "
            f"alone: correct the rule, or confirm it with `train.accept: [{NO_POSITIVES}]`"
        )
        yield ValueFinding("pipelines", pipeline, path, NO_POSITIVES, message, "error")
    others = {} if keys else {text: n for text, n in counts.items() if text not in _PLAIN_LABELS}
    has = f"{said}: column {rule.column!r} has {_listed(counts)} in {rows:,} sampled rows"
    no_rule = "without a rule, every number other than 0 is positive"
    if positive and not negative:
        message = (
            f"{has}, and none is negative{f': {no_rule}' if others else ''}; a model would be "
            "trained on positives alone: correct the rule (`positive`, `greater_than`), or confirm "
            f"it with `train.accept: [{NO_NEGATIVES}]`"
        )
        yield ValueFinding("pipelines", pipeline, path, NO_NEGATIVES, message, "error")
    elif positive and others:
        severity: Severity = "error" if any(text.startswith("-") for text in others) else "note"
        message = f"{has}: {no_rule}; say which are with `positive` or `greater_than`"
        yield ValueFinding("pipelines", pipeline, path, "label-values", message, severity)
    elif positive and isinstance(rule.positive, list):
        for index, value in enumerate(rule.positive):
            if _text(value) not in counts:
                message = (
                    f"{said}: value {value!r} never occurs in {rows:,} sampled rows: column "
                    f"{rule.column!r} has {_listed(counts)}"
                )
                where: KeyPath = (*path, index)
                yield ValueFinding("pipelines", pipeline, where, "rare-positive", message)


def _nulls(source: str, dataset: DatasetSpec, sampled: SourceSample) -> Iterator[ValueFinding]:
    """Columns that are mostly null, and labels whose nulls make a run fail."""
    spec, table = sampled.spec, sampled.sample.table
    answers = [label.column for label in dataset.targets.values()]
    read = (c for name, each in dataset.features.items() for c in feature_columns(name, each))
    for column in dict.fromkeys([*answers, *read]):
        null = _nulls_of(table, column, spec.columns[column])
        counted = f"null in {_percent(null, table.num_rows)} of {table.num_rows:,} sampled rows"
        if null > table.column(column).null_count and spec.columns[column] is ColumnType.STRING:
            counted += " (an empty text is null)"
        way_out = ""
        # A row without one of several labels is trained on for the others.
        if [column] == answers and null and spec.label_null == "fail":
            way_out = (
                "; the first null fails a run: write `label_null: dead_letter` to set them aside"
            )
        if way_out or null >= MOSTLY * table.num_rows:
            message = f"column {column!r} is {counted}{way_out}"
            yield ValueFinding("sources", source, ("columns", column), "mostly-null", message)


def _vocabularies(
    pipeline: str, dataset: DatasetSpec, sampled: Mapping[str, SourceSample]
) -> Iterator[ValueFinding]:
    for name, feature in dataset.features.items():
        if not isinstance(feature, VocabularyFeature):
            continue
        column = feature_columns(name, feature)[0]
        counts = _counts(column, sampled, feature)
        known = {str(value) for value in feature.values}
        missed = {value: count for value, count in counts.items() if value not in known}
        total, lost = sum(counts.values()), sum(missed.values())
        if not missed or max(missed.values()) < FREQUENT * total:
            continue
        none = ", which has none of them," if lost == total else ""
        message = (
            f"feature {name!r}: {_percent(lost, total)} of {total:,} sampled values of column "
            f"{column!r} are outside the vocabulary{none} and share one id: "
            f"{_listed(missed, total)}; add the frequent ones, or use `encode: hash`"
        )
        path = ("dataset", "features", name, "values")
        yield ValueFinding("pipelines", pipeline, path, "vocabulary-misses", message)


def _counts(
    column: str, sampled: Mapping[str, SourceSample], feature: VocabularyFeature | None = None
) -> dict[str, int]:
    """How often each text of a column occurs over all samples, nulls left out; frequent first."""
    arrays = []
    for each in sampled.values():
        values, kind = each.sample.table.column(column).combine_chunks(), each.spec.columns[column]
        if feature is not None and feature.part is not None:
            values, kind = time_part(values, feature.part), ColumnType.INT
        elif kind in LIST_ITEMS:
            values, kind = values.flatten(), LIST_ITEMS[kind]
        arrays.append(texts(values, kind).drop_null())
    counted = pc.value_counts(pa.concat_arrays(arrays))
    found = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def _nulls_of(table: pa.Table, column: str, kind: ColumnType) -> int:
    values = table.column(column).combine_chunks()
    return int((values if kind in LIST_ITEMS else null_as_null(values, kind)).null_count)


def _text(value: bool | float | str) -> str:  # noqa: FBT001 - a value of YAML
    kind = {bool: ColumnType.BOOL, int: ColumnType.INT, float: ColumnType.FLOAT}
    return str(texts(pa.array([value]), kind.get(type(value), ColumnType.STRING))[0].as_py())


def _listed(counts: Mapping[str, int], total: int | None = None) -> str:
    shown = [
        f"{value!r} ({f'{count:,}' if total is None else _percent(count, total)})"
        for value, count in list(counts.items())[:_SHOWN]
    ]
    more = f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
    return ", ".join(shown) + more if shown else "nothing but nulls"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.1f}%" if 0 < share < 10 else f"{np.floor(share):.0f}%"


_ROWS_MAX = 1000
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_1971 = datetime(1971, 1, 1, tzinfo=UTC)


def time_findings(
    sampled: Mapping[str, SourceSample], root: Path, now: datetime
) -> Iterator[ValueFinding]:
    """At most one finding for each source. Of tables, rows of such times are looked for too."""
    for name, each in {one.spec.name: one for one in sampled.values()}.items():
        column, bounded = each.spec.event_time, kind_named(each.spec.kind).bounded
        if column is None or column not in each.spec.columns:
            continue
        times, now_us = _times(each.sample, column), to_us(now)
        if bounded and not are_far(times, now_us).any():
            times = np.concatenate([times, _far_rows(each, column, root, now)])
        far = times[are_far(times, now_us)]
        words = newest_problem(each.spec, each.stored, now) if bounded else ""
        if len(far):
            words = far_words(int(far[-1]), now_us, each.stored.columns.get(column, ""))
        if words:
            where = f"{len(far):,} of {len(times):,} rows" if len(far) else "the newest rows"
            message = (
                f"event times are wrong in {where} that were looked at ({words}): store numbers in "
                "the unit as which they are read, and null for no time"
            )
            yield ValueFinding(
                *("sources", name, ("event_time",), "event-times", message),
                "error" if len(far) >= MOSTLY * len(times) else "note",
            )


def _times(sample: Sample, column: str) -> Times:
    return times_of(sample.table.column(column).combine_chunks())


def _far_rows(each: SourceSample, column: str, root: Path, now: datetime) -> Times:
    """Event times of a table that are in no window, so that no other sample has them."""
    spans = [Interval(_FIRST, _1971), Interval(now + AHEAD, _LAST)]
    limits = SampleLimits(seconds=SECONDS_MAX)
    with closing(opened_for_sample(each.spec, root)) as source:
        return _times(sample_rows(source, spans, [column], limits, _ROWS_MAX), column)
