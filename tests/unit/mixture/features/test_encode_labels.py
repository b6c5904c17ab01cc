"""Several labels of a row: served side by side, each known or not on its own."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from support.learning import dataset, record_batch, source
from support.there import there

from forebay.config.specs.datasets import Feed
from forebay.mixture.features.encode import Encoded, Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.features.served_times import ServedTimes
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us

AT = datetime(2026, 3, 1, tzinfo=UTC)
END = AT + timedelta(hours=10)
FEATURES: dict[str, Any] = {"n": {"encode": "numeric"}}
LABELS = {
    "click": {"column": "y"},
    "sale": {"column": "z", "positive": 2, "negative": 1, "known_at": "sold"},
    "visit": {"column": "v", "known_at": "seen"},
}
TIMES = ServedTimes(event_times=True, waits=True)


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


def test_labels_are_beside_each_other_in_their_order() -> None:
    found, rows = encoded({"y": [0, 1, None], "z": [2, 1, 2], "v": [1, 0, 0]})
    assert found.batch.schema.names[2:5] == ["label", "label:sale", "label:visit"]
    assert shown(rows.labels) == [0, 1, None]
    assert [shown(each.labels) for each in rows.further] == [[1, 0, 1], [1, 0, 0]]
    assert (found.null_label.tolist(), found.bad) == ([False] * 3, {})


def test_a_label_that_is_known_too_late_is_not_said_and_the_others_are() -> None:
    late = hours(9, 10, 11)
    found, rows = encoded({"y": [0, 1, 0], "z": [1, 1, 2], "v": [0, 1, 1], "sold": late})
    assert not there(found.not_known).any()
    sale, visit = rows.further
    assert (shown(sale.labels), shown(visit.labels)) == ([0, None, None], [0, 1, 1])
    every, _ = encoded({"y": [0], "z": [1], "v": [0], "sold": hours(99)}, end=None)
    assert every.not_known is None


def test_rows_of_which_nothing_is_said_are_late_or_null() -> None:
    none = [None, None, None]
    found, _ = encoded({"y": none, "z": [None, 1, 1], "v": none, "sold": hours(None, 12, 9)})
    assert found.null_label.tolist() == [True, False, False]
    assert there(found.not_known).tolist() == [False, True, False]


def test_streams_say_what_they_know() -> None:
    found, rows = encoded({"y": [0], "z": [2], "v": [0], "sold": hours(99)}, feed="stream")
    assert found.not_known is None
    assert shown(rows.further[0].labels) == [1]


def test_a_bad_label_makes_a_bad_row() -> None:
    found, _ = encoded({"y": [0, 0], "z": [3, 1], "v": [0, 0], "seen": hours(None, -1)})
    assert found.bad == {
        0: "the label in column 'z' is 3",
        1: "its label was known before the event",
    }
