"""Raw values to numbers: nulls, texts, parts, label rules, event identity, minibatches."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import farmhash
import numpy as np
import pyarrow as pa
import pytest
from support.learning import dataset, encode, layout_of, record_batch, source
from support.there import there

from forebay.config.specs.datasets import Feed
from forebay.errors import ConfigError
from forebay.mixture.features.bad_rows import LIST_ITEMS_MAX
from forebay.mixture.features.encode import Encoded, Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import served_schema, to_minibatch
from forebay.mixture.features.served_times import ServedTimes
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us


def bucket(text: str, buckets: int) -> int:
    return 1 + farmhash.fingerprint64(text) % (buckets - 1)


def test_rows_that_would_spoil_a_model_or_fill_memory_are_named() -> None:
    features = {
        "n": {"encode": "numeric", "scale": 0.5},
        "b": {"encode": "bucketise", "column": "n", "boundaries": [0]},
        "tags": {"encode": "hash", "buckets": 9},
    }
    # Its scale doubles them.
    numbers = [1.0, math.inf, 3e38, None, math.nan, -math.inf, -6e18, 4e18]
    items = [0] * 6 + [LIST_ITEMS_MAX, LIST_ITEMS_MAX + 1]
    tags = [["a"] * count for count in items]
    found, _ = encode(
        features, {"n": "float", "tags": "list<string>"}, {"n": numbers, "tags": tags}
    )
    assert {row: why for row, why in found.bad.items() if row != 7} == {
        1: "column 'n' is inf",
        2: "feature 'n' is beyond 1e+19 where column 'n' is 3e+38",
        4: "column 'n' is nan",
        5: "column 'n' is -inf",
        6: "feature 'n' is beyond 1e+19 where column 'n' is -6e+18",
    }
    assert "'tags' has 65,537 items, but a row may have at most 65,536" in found.bad[7]


def test_event_id_is_the_fingerprint_of_the_joined_texts() -> None:
    when = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    rows = {"a": ["x", None], "b": [3, None], "c": [when, None], "d": [0.5, None]}
    kinds = {"a": "string", "b": "int", "c": "timestamp", "d": "float"}
    feature = {"f": {"encode": "numeric", "column": "b"}}
    found, _ = encode(feature, kinds, rows, event_id=["a", "b", "c", "d"])
    texts = ["x\x1f3\x1f1000000\x1f0.5", "\x1f\x1f\x1f"]
    wanted = np.array([farmhash.fingerprint64(text) for text in texts], np.uint64).view(np.int64)
    assert found.batch.column("event_id").to_pylist() == wanted.tolist()


def test_minibatch_from_a_slice_has_only_its_rows() -> None:
    features = {
        "n": {"encode": "numeric"},
        "tags": {"encode": "hash", "buckets": 9},
        "user": {"encode": "hash", "buckets": 9},
        "more": {"encode": "hash", "buckets": 9, "column": "user"},
    }
    rows = {
        "n": list(range(6)),
        "user": list("abcdef"),
        "tags": [["p"], ["q", "r"], None, ["s"], [], ["p", "q", "r"]],
        "y": [0, 1, 0, 1, 0, 1],
    }
    found, layout = encode(features, {"n": "int", "user": "string", "tags": "list<string>"}, rows)
    batch = to_minibatch(found.batch.slice(1, 4), [(2, 1), (0, 3)], "stream", layout)
    assert (batch.sources.tolist(), batch.row_ids.tolist()) == ([2, 0, 0, 0], [1, 2, 3, 4])
    assert batch.event_ids.tolist() == found.batch.column(1).to_pylist()[1:5]
    assert batch.labels.tolist() == [1, 0, 1, 0]
    assert batch.dense.tolist() == [[1], [2], [3], [4]]
    assert batch.ids.tolist() == [[bucket(t, 9)] * 2 for t in "bcde"]
    splits, values = batch.lists[0]
    assert splits.tolist() == [0, 2, 2, 3, 3]
    assert values.tolist() == [bucket("q", 9), bucket("r", 9), bucket("s", 9)]
    assert len(to_minibatch(found.batch.slice(0, 0), [], "batch", layout)) == 0
    assert (batch.event_times, batch.waits) == (None, None)
    with pytest.raises(ValueError, match="segments name 1 rows"):
        to_minibatch(found.batch, [(0, 1)], "batch", layout)
    place = found.batch.schema.get_field_index("ids")
    for wrong in (9, -1):
        ids = pa.array([[1, wrong]] * 6, found.batch.schema.field(place).type)
        batch = found.batch.set_column(place, found.batch.schema.field(place), ids)
        with pytest.raises(ValueError, match=f"feature 'more': id {wrong} is outside of 0 to 8"):
            to_minibatch(batch, [(0, 6)], "batch", layout)


def test_a_feature_may_be_called_like_a_served_column() -> None:
    found, _ = encode({"label": {"encode": "numeric", "column": "n"}}, {"n": "int"}, {"n": [7]})
    assert found.batch.column("label").to_pylist() == [0.0]
    assert found.batch.column("dense").to_pylist() == [[7.0]]


def test_layout_names_every_misfit_at_once_and_reads_only_what_is_declared() -> None:
    features = {
        "a": {"encode": "numeric"},
        "b": {"encode": "hash", "buckets": 5, "part": "hour"},
        "c": {"encode": "hash", "buckets": 5},
    }
    names = r"(?m)^feature 'a':.*\nfeature 'b':.*\nfeature 'c':"
    with pytest.raises(ConfigError, match=names):
        layout_of(features, {"a": "string", "b": "int"})
    layout = layout_of(
        {"n": features["a"], "x": {"encode": "cross", "columns": ["n", "s"], "buckets": 9}},
        {"n": "int", "s": "string", "never": "float"},
    )
    assert (layout.stored_columns, list(layout.types)) == (("n", "s", "y", "e"), ["n", "s"])
    assert layout.names == ["n", "x"]


def test_encoder_names_a_column_that_the_source_lacks() -> None:
    data = dataset({"n": {"encode": "numeric"}})
    layout = FeatureLayout.of(data, source({"n": "int"}).columns)
    with pytest.raises(ConfigError, match="source 's' declares no column 'n'"):
        Encoder(data, source({"m": "int"}), layout)
    text_label = dataset({"m": {"encode": "numeric"}}, label={"column": "t"})
    kinds = source({"m": "int", "t": "string"})
    with pytest.raises(ConfigError, match="positive"):
        Encoder(text_label, kinds, FeatureLayout.of(text_label, kinds.columns))


def test_lists_with_numbers_that_are_none_make_bad_rows() -> None:
    feature = {"f": {"encode": "bucketise", "column": "c", "boundaries": [0]}}
    values = [[1.0, None], [], None, [0.5, math.nan], [math.inf]]
    found, _ = encode(feature, {"c": "list<float>"}, {"c": values})
    assert sorted(found.bad) == [3, 4]
    assert set(found.bad.values()) == {"column 'c' holds NaN or an infinite number"}


def test_an_event_without_any_part_of_its_id_is_a_bad_row() -> None:
    feature = {"f": {"encode": "numeric", "column": "n"}}
    rows = {"n": [1, 2, 3, 4], "e": ["a", None, "", None], "d": [1, 2, None, None]}
    both, _ = encode(feature, {"n": "int", "d": "int"}, rows, event_id=["e", "d"])
    assert dict(both.bad) == {2: "the event has no id", 3: "the event has no id"}
    one, _ = encode(feature, {"n": "int", "d": "int"}, rows)
    assert sorted(one.bad) == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "rule", "values", "bad"),
    [
        ("int", {"positive": 1, "negative": [0, 2]}, [1, 0, 2, 3, None, -1], [3, 5]),
        ("string", {"positive": ["y"], "negative": ["n"]}, ["y", "n", "Y", None, ""], [2]),
        ("int", {"positive": 1}, [1, 0, 7, None], []),
        ("float", {"greater_than": 0.5}, [1.0, math.inf, math.nan, -math.inf], [1, 3]),
        ("bool", {"positive": True, "negative": False}, [True, False, None], []),
    ],
)
def test_a_label_outside_of_its_domain_is_a_bad_row(
    kind: str, rule: dict[str, Any], values: list[Any], bad: list[int]
) -> None:
    feature = {"f": {"encode": "numeric", "column": "n"}}
    columns, rows = {"n": "int", "y": kind}, {"n": [0] * len(values), "y": values}
    found, _ = encode(feature, columns, rows, label={"column": "y", **rule})
    assert sorted(found.bad) == bad
    assert all(reason.startswith("the label in column 'y' is ") for reason in found.bad.values())


HOUR, TIMES = 3_600_000_000, ServedTimes(event_times=True, waits=True)


def test_rows_say_when_they_happened_and_what_was_known_of_them() -> None:
    label = {"column": "y", "known_at": "known"}
    data = dataset({"f": {"encode": "numeric", "column": "n"}}, label=label)
    spec = source({"n": "int", "at": "timestamp", "known": "timestamp"})
    spec = spec.model_copy(update={"event_time": "at"})
    layout = FeatureLayout.of(data, spec.columns)
    known = [2 * HOUR, None, 3 * HOUR, 9 * HOUR, 4 * HOUR]
    times = {"at": [0, HOUR, None, 0, 5 * HOUR], "known": known}
    timed = record_batch(spec, {"n": [0] * 5, **times})
    encoder = Encoder(data, spec, layout, TIMES, "stream")
    assert encoder.columns == ("n", "y", "e", "at")  # known_at is of batch sources
    published = np.array([HOUR, HOUR // 2, HOUR, -(2**63), 7 * HOUR])
    found = encoder.encode(timed, np.arange(5), published, 3 * HOUR)
    assert found.not_known is None
    assert found.batch.schema == served_schema(layout, TIMES)
    batch = to_minibatch(found.batch, [(0, 5)], "stream", layout)
    assert there(batch.event_times).tolist() == [0, HOUR, -(2**63), 0, 5 * HOUR]
    # The second was published before its event.
    np.testing.assert_array_equal(there(batch.waits), [3600, 0, math.nan, math.nan, 7200])
    plain = Encoder(data, spec, layout)
    assert plain.columns == layout.stored_columns
    for some in (timed, timed.slice(0, 0)):
        found = plain.encode(some, np.arange(len(some)))
        assert found.batch.schema == served_schema(layout)
    encoder = Encoder(data, spec, layout, TIMES, "batch")
    assert encoder.columns == ("n", "y", "e", "at", "known")
    found = encoder.encode(timed, np.arange(5), None, 3 * HOUR)
    # Known at the very end of the window is not known before it.
    assert there(found.not_known).tolist() == [False, False, True, True, True]
    assert dict(found.bad) == {4: "its label was known before the event"}
    batch = to_minibatch(found.batch, [(0, 5)], "batch", layout)
    assert np.isnan(there(batch.waits)).all()


AT = datetime(2026, 3, 1, tzinfo=UTC)
END = AT + timedelta(hours=10)
FEATURES: dict[str, Any] = {"n": {"encode": "numeric"}}
LABELS = {
    "click": {"column": "y"},
    "sale": {"column": "z", "positive": 2, "negative": 1, "known_at": "sold"},
    "visit": {"column": "v", "known_at": "seen"},
}


def encoded(
    rows: dict[str, list[Any]], feed: Feed = "batch", end: datetime | None = END
) -> tuple[Encoded, Minibatch]:
    columns = {"n": "float", "z": "int", "v": "int", "at": "timestamp", "sold": "timestamp"}
    spec = source({**columns, "seen": "timestamp"}).model_copy(update={"event_time": "at"})
    data = dataset(FEATURES, label=None, named_labels=LABELS)
    layout, count = FeatureLayout.of(data, spec.columns), len(rows["y"])
    made = {"n": [0.5] * count, "at": [AT] * count, "sold": [None] * count, "seen": [None] * count}
    found = Encoder(data, spec, layout, TIMES, feed).encode(
        record_batch(spec, made | rows),
        np.arange(count),
        window_end=None if end is None else to_us(end),
    )
    return found, to_minibatch(found.batch, [(0, count)], feed, layout)


def shown(values: Any) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def hours(*each: float | None) -> list[Any]:
    return [None if one is None else AT + timedelta(hours=one) for one in each]


def test_labels_are_beside_each_other_in_their_order_and_streams_say_what_they_know() -> None:
    found, rows = encoded({"y": [0, 1, None], "z": [2, 1, 2], "v": [1, 0, 0]})
    assert found.batch.schema.names[2:5] == ["label", "label:sale", "label:visit"]
    assert shown(rows.labels) == [0, 1, None]
    assert [shown(each.labels) for each in rows.further] == [[1, 0, 1], [1, 0, 0]]
    assert (found.null_label.tolist(), found.bad) == ([False] * 3, {})
    found, rows = encoded({"y": [0], "z": [2], "v": [0], "sold": hours(99)}, feed="stream")
    assert found.not_known is None
    assert shown(rows.further[0].labels) == [1]


def test_a_label_that_is_known_too_late_is_not_said_and_the_others_are() -> None:
    late = hours(9, 10, 11)
    found, rows = encoded({"y": [0, 1, 0], "z": [1, 1, 2], "v": [0, 1, 1], "sold": late})
    assert not there(found.not_known).any()
    sale, visit = rows.further
    assert (shown(sale.labels), shown(visit.labels)) == ([0, None, None], [0, 1, 1])
    every, _ = encoded({"y": [0], "z": [1], "v": [0], "sold": hours(99)}, end=None)
    assert every.not_known is None
    none = [None, None, None]
    found, _ = encoded({"y": none, "z": [None, 1, 1], "v": none, "sold": hours(None, 12, 9)})
    assert found.null_label.tolist() == [True, False, False]
    assert there(found.not_known).tolist() == [False, True, False]


def test_a_bad_label_makes_a_bad_row() -> None:
    found, _ = encoded({"y": [0, 0], "z": [3, 1], "v": [0, 0], "seen": hours(None, -1)})
    assert found.bad == {
        0: "the label in column 'z' is 3",
        1: "its label was known before the event",
    }
