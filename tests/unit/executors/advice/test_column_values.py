"""What sampled values show: positives, nulls, vocabularies, crowded buckets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.learning import dataset

from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.look.sampling import Sample
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES, Description
from forebay.executors.advice.column_values import crowded_features, value_findings
from forebay.executors.advice.samples import SourceSample
from forebay.executors.advice.twins import Rows, complete_rows, fresh_rows, twin_spans
from forebay.system.instants import to_us

START = datetime(2026, 3, 1, tzinfo=UTC)


def sampled(
    columns: dict[str, str], rows: dict[str, list[Any]], name: str = "s0", **more: Any
) -> SourceSample:
    spec = SourceSpec.model_validate(
        {"name": name, "kind": "memory", "columns": columns, "options": {"table": "t"}, **more}
    )
    arrays = {name: pa.array(rows[name], ARROW_TYPES[kind]) for name, kind in spec.columns.items()}
    table = pa.table(arrays)
    sample = Sample(table, np.zeros(table.num_rows, np.int64), table.num_rows, None, is_whole=True)
    over = Interval(START, START + timedelta(days=1))
    return SourceSample(spec, "batch", timedelta(0), over, sample, None, Description({}))


def messages(data: DatasetSpec, *samples: SourceSample) -> list[tuple[str, str, str]]:
    names = {f"{each.spec.name}@{number}": each for number, each in enumerate(samples)}
    return [(each.severity, each.code, each.message) for each in value_findings("ads", data, names)]


FEATURES = {"x": {"encode": "numeric"}}
COLUMNS = {"e": "string", "y": "int", "x": "float"}


@pytest.mark.parametrize(
    ("kind", "values", "rule", "is_found"),
    [
        ("int", [0, 0], {}, False),
        ("int", [1, 2], {"positive": 2}, True),
        ("int", [1, 2], {"positive": 3}, False),
        ("string", ["y", "n"], {"positive": "y"}, True),
        ("string", ["Y", "n"], {"positive": "y"}, False),
        ("bool", [True, False], {"positive": True}, True),
        ("bool", [False, False], {"positive": True}, False),
        ("float", [0.4, 0.6], {"greater_than": 0.5}, True),
        ("float", [0.4, 0.5], {"greater_than": 0.5}, False),
        ("float", [None, None], {"less_than": 0.5}, False),
    ],
)
def test_no_positives(kind: str, values: list[Any], rule: dict[str, Any], is_found: bool) -> None:
    data = dataset(FEATURES, label={"column": "y", **rule})
    rows = {"e": ["a", "b"], "y": values, "x": [1.0, 2.0]}
    each = sampled(COLUMNS | {"y": kind}, rows, label_null="dead_letter")
    errors = [found for found in messages(data, each) if found[0] == "error"]
    assert len(errors) == (not is_found)
    for _, code, message in errors:
        assert code == "no_positives"
        assert "never occurs in 2 sampled rows of s0: column 'y' has " in message


def test_one_source_with_positives_is_enough() -> None:
    none = sampled(COLUMNS, {"e": ["a"], "y": [0], "x": [1.0]})
    some = sampled(COLUMNS, {"e": ["a"], "y": [1], "x": [1.0]}, "s1")
    assert (messages(dataset(FEATURES), none, some), messages(dataset(FEATURES))) == ([], [])


@pytest.mark.parametrize(
    ("kind", "values", "rule", "found"),
    [
        ("int", [-1, 1, 1], {}, ("error", "no_negatives")),
        ("int", [1, 2, 1], {}, ("error", "no_negatives")),
        ("float", [1.0, 1.0, None], {}, ("error", "no_negatives")),
        ("bool", [True, True, True], {}, ("error", "no_negatives")),
        ("string", ["y", "y", "y"], {"positive": "y"}, ("error", "no_negatives")),
        ("int", [3, 2, 1], {"greater_than": 0}, ("error", "no_negatives")),
        ("int", [-1, 0, 1], {}, ("error", "label-values")),
        ("int", [0, 1, 7], {}, ("note", "label-values")),
        ("float", [0.0, 0.5, 1.0], {}, ("note", "label-values")),
        ("int", [-1, 1, 1], {"positive": 1}, None),
        ("int", [-1, 1, 1], {"greater_than": 0}, None),
        ("int", [0, 1, 1], {}, None),
        ("bool", [True, False, None], {}, None),
    ],
)
def test_labels_of_one_class_or_of_other_values(
    kind: str, values: list[Any], rule: dict[str, Any], found: tuple[str, str] | None
) -> None:
    rows = {"e": list("abc"), "y": values, "x": [1.0] * 3}
    each = sampled({"e": "string", "y": kind, "x": "float"}, rows, label_null="dead_letter")
    said = messages(dataset(FEATURES, label={"column": "y", **rule}), each)
    assert [one[:2] for one in said] == ([found] if found else [])
    for _, _, message in said:
        assert message.startswith("label: column 'y' has ")
        assert "in 3 sampled rows" in message
        assert ("without a rule, every number other than 0" in message) is (
            not rule and not set(values) <= {0, 1, None}
        )


def test_rows_that_two_streams_read_are_counted_once() -> None:
    data = dataset(FEATURES | {"e": {"encode": "vocabulary", "values": ["a"]}})
    each = sampled(COLUMNS, {"e": ["a", "b"], "y": [0, 0], "x": [1.0, None]})
    said = messages(data, each, each)
    assert said == messages(data, each)
    assert "in 2 sampled rows of s0: column" in said[0][2]
    assert any("50% of 2 sampled values" in message for _, _, message in said)


def test_each_value_of_a_list_of_positives_is_looked_for() -> None:
    data = dataset(FEATURES, label={"column": "y", "positive": ["buy", "rent", "lease"]})
    rows = {"e": list("abc"), "y": ["buy", "no", "rent"], "x": [1.0] * 3}
    (found,) = messages(data, sampled({"e": "string", "y": "string", "x": "float"}, rows))
    assert found[:2] == ("note", "rare-positive")
    assert found[2] == (
        "label: value 'lease' never occurs in 3 sampled rows: column 'y' has 'buy' (1), 'no' (1), "
        "'rent' (1)"
    )


def test_columns_that_are_mostly_null() -> None:
    rows: dict[str, list[Any]] = {
        "e": list("abcdefgh"),
        "y": [1, 0, *[None] * 6],
        "x": [None, float("nan"), 1.0, 2.0] * 2,
    }
    label, feature = messages(dataset(FEATURES), sampled(COLUMNS, rows))
    assert label[2] == (
        "column 'y' is null in 75% of 8 sampled rows; the first null fails a run: write "
        "`label_null: dead_letter` to set them aside"
    )
    assert feature[2] == "column 'x' is null in 50% of 8 sampled rows"
    rows |= {"y": [1, 0] * 4, "x": [None, 1.0, 1.0, 2.0] * 2}
    assert messages(dataset(FEATURES), sampled(COLUMNS, rows)) == []


def test_frequent_values_outside_a_vocabulary() -> None:
    features: dict[str, Any] = {
        "city": {"encode": "vocabulary", "values": ["rome", "oslo"]},
        "tags": {"encode": "vocabulary", "values": [1, 2]},
        "weekday": {"encode": "vocabulary", "column": "at", "part": "weekday", "values": [6]},
    }
    columns = {"e": "string", "y": "int", "city": "string", "tags": "list<int>", "at": "timestamp"}
    rows: dict[str, list[Any]] = {
        "e": [f"e{n}" for n in range(200)],
        "y": [1, 0] * 100,
        "city": ["rome"] * 180 + ["paris"] * 19 + [None],
        "tags": [[1, 2], [3]] * 100,
        "at": [START] * 200,
    }
    city, tags = messages(dataset(features), sampled(columns, rows))
    assert city[2] == (
        "feature 'city': 9.5% of 199 sampled values of column 'city' are outside the vocabulary "
        "and share one id: 'paris' (9.5%); add the frequent ones, or use `encode: hash`"
    )
    assert "33% of 300 sampled values of column 'tags'" in tags[2]
    rows["city"] = ["rome"] * 199 + ["nice"]
    rows["tags"] = [[7]] * 200
    (tags,) = messages(dataset(features), sampled(columns, rows))
    assert "outside the vocabulary, which has none of them, and share one id: '7' (100%)" in tags[2]


def test_more_values_than_buckets() -> None:
    features = {"u": {"encode": "hash", "buckets": 3}, "v": {"encode": "hash", "buckets": 4}}
    columns = {"e": "string", "y": "int", "u": "int", "v": "int"}
    rows = {"e": list("abcd"), "y": [1] * 4, "u": [1, 2, 3, 4], "v": [1, 2, 3, 4]}
    assert crowded_features(dataset(features), {"s": sampled(columns, rows)}) == {"u": (4, 3)}


HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOW = START + 100 * DAY
PUBLISHED = {"e": "string", "y": "int", "x": "float", "at": "timestamp", "known": "timestamp"}


def published(
    kind: str,
    rows: list[tuple[str, int | None, datetime | None, datetime]],
    event_time: str | None = "at",
    offset: timedelta = timedelta(0),
) -> SourceSample:
    """Rows of (event, label, when it happened, when it was published or its label known)."""
    events, labels, at, known = ([row[place] for row in rows] for place in range(4))
    arrays = {"e": events, "y": labels, "x": [0.0] * len(rows), "at": at, "known": known}
    found = sampled(PUBLISHED, arrays, kind=kind, options={}, event_time=event_time)
    sample = replace(found.sample, times_us=np.array([to_us(each) for each in known], np.int64))
    over = Interval(START, START + 4 * DAY)
    return replace(found, feed="stream", offset=offset, sample=sample, over=over)


def data(window: str = "1d", **more: Any) -> DatasetSpec:
    return dataset({"x": {"encode": "numeric"}}, window=window, **more)


def test_fresh_rows_are_in_order_of_publication_with_waits_and_groups() -> None:
    rows = [
        ("b", None, START, START + 2 * DAY),
        ("a", 1, START + 2 * HOUR, START + 3 * HOUR),
        ("c", 0, None, START + 4 * DAY),
        ("d", 0, START + 5 * HOUR, START + 4 * HOUR),
    ]
    found = fresh_rows(data(), published("log", rows))
    assert found.labels[:2].tolist() == [1.0, 0.0]
    assert np.isnan(found.labels[2])
    assert found.waits[:3].tolist() == [3600.0, 0.0, 2 * 86_400.0]
    assert np.isnan(found.waits[3])
    assert (found.groups.tolist(), len(set(found.event_ids.tolist()))) == ([0, 0, 6, 11], 4)


def test_what_is_cut_by_the_event_does_not_say_when_it_was_published() -> None:
    rows = [("a", 1, START, START + HOUR)]
    assert np.isnan(fresh_rows(data(), published("parquet", rows)).waits).all()
    assert np.isnan(fresh_rows(data(), published("log", rows, event_time=None)).waits).all()


def test_twins_are_looked_for_in_the_windows_of_the_events() -> None:
    rows = [
        ("a", 1, START + 2 * HOUR, START + 40 * HOUR),
        ("b", 1, START + 3 * HOUR, START + 40 * HOUR),
        ("c", 1, START + 50 * HOUR, START + 51 * HOUR),
        ("d", 1, START + 900 * DAY, START + 51 * HOUR),
        ("e", 1, None, START + 51 * HOUR),
    ]
    fresh, other = published("log", rows), published("parquet", [])
    assert twin_spans(data(), fresh, other, NOW) == [
        Interval(START, START + DAY),
        Interval(START + 2 * DAY, START + 3 * DAY),
    ]
    assert twin_spans(data("1h"), fresh, other, NOW) == [
        Interval(START + 2 * HOUR, START + 4 * HOUR),
        Interval(START + 50 * HOUR, START + 51 * HOUR),
    ]


def test_labels_that_may_still_change_are_left_out() -> None:
    rows = [("a", 1, START + 2 * HOUR, START + 3 * HOUR)]
    other = published("parquet", [], offset=DAY)
    early = twin_spans(data(), published("log", rows), other, START + DAY + HOUR)
    assert early == [Interval(START, START + HOUR)]
    assert twin_spans(data(), published("log", rows), other, START + DAY) == []


def test_without_a_time_twins_are_looked_for_before_the_publication() -> None:
    fresh = published("log", [("a", 1, None, START + 2 * DAY + HOUR)], event_time=None)
    other = published("parquet", [], offset=30 * HOUR)
    assert twin_spans(data(), fresh, other, NOW) == [Interval(START, START + 3 * DAY)]


def test_delays_are_from_the_event_until_its_label_was_known() -> None:
    one = published("parquet", [("a", 1, START, START + 2 * HOUR), ("b", 1, None, START)])
    told = data(label={"column": "y", "known_at": "known"})
    found = complete_rows(told, [Rows(one.spec, one.sample.table)])
    assert found.delays[0] == 7200.0
    assert np.isnan(found.delays[1])


def test_complete_rows_of_several_sources() -> None:
    one = published("parquet", [("a", 1, START, START)])
    other = published("memory", [("b", None, START, START)])
    found = complete_rows(data(), [Rows(each.spec, each.sample.table) for each in (one, other)])
    assert found.labels[0] == 1
    assert np.isnan(found.labels[1])
    assert np.isnan(found.delays).all()
    assert fresh_rows(data(), one).event_ids[0] == found.event_ids[0]
    assert len(complete_rows(data(), []).labels) == 0
