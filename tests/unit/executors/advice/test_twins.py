"""Where twins are looked for, and sampled rows as arrays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from support.learning import dataset

from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.look.sampling import Sample
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES, Description
from forebay.executors.advice.samples import SourceSample
from forebay.executors.advice.twins import Rows, complete_rows, fresh_rows, twin_spans
from forebay.system.instants import to_us

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOW = START + 100 * DAY
COLUMNS = {"e": "string", "y": "int", "x": "float", "at": "timestamp", "known": "timestamp"}


def sampled(
    kind: str,
    rows: list[tuple[str, int | None, datetime | None, datetime]],
    event_time: str | None = "at",
    offset: timedelta = timedelta(0),
    days: int = 4,
) -> SourceSample:
    """Rows of (event, label, when it happened, when it was published or its label known)."""
    spec = SourceSpec.model_validate(
        {"name": "s", "kind": kind, "columns": COLUMNS, "event_time": event_time}
    )
    arrays: dict[str, Any] = {
        "e": [row[0] for row in rows],
        "y": [row[1] for row in rows],
        "x": [0.0] * len(rows),
        "at": [row[2] for row in rows],
        "known": [row[3] for row in rows],
    }
    table = pa.table({n: pa.array(arrays[n], ARROW_TYPES[k]) for n, k in spec.columns.items()})
    times = np.array([to_us(row[3]) for row in rows], np.int64)
    sample = Sample(table, times, len(rows), None, is_whole=True)
    over = Interval(START, START + days * DAY)
    return SourceSample(spec, "stream", offset, over, sample, None, Description({}))


def data(window: str = "1d", **more: Any) -> DatasetSpec:
    return dataset({"x": {"encode": "numeric"}}, window=window, **more)


def test_fresh_rows_are_in_order_of_publication_with_waits_and_groups() -> None:
    rows = [
        ("b", None, START, START + 2 * DAY),
        ("a", 1, START + 2 * HOUR, START + 3 * HOUR),
        ("c", 0, None, START + 4 * DAY),
        ("d", 0, START + 5 * HOUR, START + 4 * HOUR),
    ]
    found = fresh_rows(data(), sampled("log", rows))
    assert found.labels[:2].tolist() == [1.0, 0.0]
    assert np.isnan(found.labels[2])
    assert found.waits[:3].tolist() == [3600.0, 0.0, 2 * 86_400.0]
    assert np.isnan(found.waits[3])
    assert (found.groups.tolist(), len(set(found.event_ids.tolist()))) == ([0, 0, 6, 11], 4)


def test_what_is_cut_by_the_event_does_not_say_when_it_was_published() -> None:
    rows = [("a", 1, START, START + HOUR)]
    assert np.isnan(fresh_rows(data(), sampled("parquet", rows)).waits).all()
    assert np.isnan(fresh_rows(data(), sampled("log", rows, event_time=None)).waits).all()


def test_twins_are_looked_for_in_the_windows_of_the_events() -> None:
    rows = [
        ("a", 1, START + 2 * HOUR, START + 40 * HOUR),
        ("b", 1, START + 3 * HOUR, START + 40 * HOUR),
        ("c", 1, START + 50 * HOUR, START + 51 * HOUR),
        ("d", 1, START + 900 * DAY, START + 51 * HOUR),
        ("e", 1, None, START + 51 * HOUR),
    ]
    fresh, other = sampled("log", rows), sampled("parquet", [])
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
    other = sampled("parquet", [], offset=DAY)
    early = twin_spans(data(), sampled("log", rows), other, START + DAY + HOUR)
    assert early == [Interval(START, START + HOUR)]
    assert twin_spans(data(), sampled("log", rows), other, START + DAY) == []


def test_without_a_time_twins_are_looked_for_before_the_publication() -> None:
    fresh = sampled("log", [("a", 1, None, START + 2 * DAY + HOUR)], event_time=None)
    other = sampled("parquet", [], offset=30 * HOUR)
    assert twin_spans(data(), fresh, other, NOW) == [Interval(START, START + 3 * DAY)]


def test_delays_are_from_the_event_until_its_label_was_known() -> None:
    one = sampled("parquet", [("a", 1, START, START + 2 * HOUR), ("b", 1, None, START)])
    told = data(label={"column": "y", "known_at": "known"})
    found = complete_rows(told, [Rows(one.spec, one.sample.table)])
    assert found.delays[0] == 7200.0
    assert np.isnan(found.delays[1])


def test_complete_rows_of_several_sources() -> None:
    one = sampled("parquet", [("a", 1, START, START)])
    other = sampled("memory", [("b", None, START, START)])
    found = complete_rows(data(), [Rows(each.spec, each.sample.table) for each in (one, other)])
    assert found.labels[0] == 1
    assert np.isnan(found.labels[1])
    assert np.isnan(found.delays).all()
    assert fresh_rows(data(), one).event_ids[0] == found.event_ids[0]
    assert len(complete_rows(data(), []).labels) == 0
