"""Joins of several labels: each looks for copies that have it, as far back as it declares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.declarations import COLUMNS
from support.links import link, window_of

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import order_of
from forebay.executors.label_join import join as joining
from forebay.executors.label_join.join import LabelJoins
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import ScoreWriter
from forebay.home.store.base import Stored
from forebay.mixture.minibatch import LabelRows, Minibatch
from forebay.system.instants import to_us

NAN = math.nan
Row = tuple[int, str, float, float, float, float]  # event id, time, wait in hours, three labels
FURTHER = ["sale", "visit"]
NAMES = ["mixture", "sale:mixture", "visit:mixture"]
SOURCES = {
    name: SourceSpec.model_validate(
        {"name": name, "kind": kind, "columns": COLUMNS, "event_time": "at"}
    )
    for name, kind in (("history", "parquet"), ("clicks", "log"))
}


def spec(count: int = 2) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "name": "ads",
            "dataset": {
                "window": "1h",
                "start": "2026-03-01",
                "event_id": "event",
                "named_labels": {
                    "click": {"column": "clicked", "delay": "none"},
                    "sale": {"column": "clicked", "greater_than": 1},
                    "visit": {"column": "clicked", "greater_than": 2, "label_join": "48h"},
                },
                "streams": {
                    "history": {"sources": ["history"], "offset": "24h"},
                    "clicks": {"sources": ["clicks"]},
                },
                "features": {"user": {"encode": "hash", "buckets": 10}},
            },
            "train": {"paradigm": "mixture", "delay": "head"},
            "job": {"roles": {"data": {"count": count}}},
        }
    )


def minibatch(feed: Any, rows: Sequence[Row]) -> Minibatch:
    ids, times, hours, *labels = zip(*rows, strict=True)
    first, *others = (np.array(each, np.float32) for each in labels)
    return Minibatch(
        feed=feed,
        row_ids=np.array(ids, np.int64),
        event_ids=np.array(ids, np.int64),
        sources=np.full(len(rows), feed == "stream", np.int32),
        labels=first,
        dense=np.zeros((len(rows), 0), np.float32),
        ids=np.zeros((len(rows), 0), np.int64),
        event_times=np.array([to_us(datetime.fromisoformat(f"2026-03-{at}Z")) for at in times]),
        waits=np.array(hours, np.float32) * 3600,
        further=tuple(LabelRows(each) for each in others),
    )


class Line:
    """Trained windows of a line, whose segments lie in folders of their own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.home = None
        self.links: list[Link] = []
        monkeypatch.setattr(joining, "store_of", lambda _home: self)

    def tree(self, stored: Stored) -> Path:
        return self.root / stored.name

    def between(self, first: Any, last: Any) -> list[Link]:
        return [each for each in self.links if order_of(first) <= order_of(each) <= order_of(last)]

    def write(self, key: str, rows: Sequence[Row], held: Any = None) -> Path:
        writer = ScoreWriter(self.root / key, NAMES, {}, 0, FURTHER)
        learnt = minibatch("stream", rows).after_guards(held)
        writer.append(learnt, np.zeros((len(rows), 3), np.float32))
        writer.seal()
        return self.root / key

    def trained(self, key: str, rows: Sequence[Row], held: Any = None) -> Link:
        self.write(key, rows, held)
        self.links.append(link(key, files={"scores": Stored(name=key, checksum="", size_bytes=1)}))
        return self.links[-1]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(tmp_path, monkeypatch)


def joins_of(line: Line, key: str, before: Link | None, count: int = 2) -> tuple[LabelJoins, Any]:
    chain: Any = line
    joins, span = LabelJoins(chain, spec(count), SOURCES), window_of(key)
    plan: Any = SimpleNamespace(window=key, start=span.start, end=span.end)
    joins.begin(plan, before)
    return joins, plan


def found(joins: LabelJoins, rows: Sequence[Row]) -> list[list[list[float]]]:
    """(wait in hours, known) of each row, by label that is joined."""
    asked = minibatch("batch", rows)
    joined = joins.joined(replace(asked, waits=np.full(len(rows), NAN, np.float32)))
    assert joined.known is None  # of clicks, which no variant corrects
    shown = []
    for each in joined.further:
        assert each.waits is not None
        assert each.known is not None
        shown.append(np.stack([each.waits / 3600, each.known], axis=1).tolist())
    return shown


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(np.array(one), np.array(other, np.float64))


def test_the_guard_of_a_label_takes_copies_from_it_alone(line: Line) -> None:
    rows: list[Row] = [(1, "01T06:30", 1, 1, 0, 1), (2, "01T06:40", 1, 0, 0, 1)]
    held = np.array([[True, True, False], [False, False, True]])
    joins, _ = joins_of(line, "2026-03-02T06", line.trained("2026-03-01T09", rows, held))
    asked: list[Row] = [(1, "01T06:30", 0, 1, 1, 1), (2, "01T06:40", 0, 0, 1, 1)]
    same(found(joins, asked), [[[NAN, NAN], [1, 0]], [[1, 1], [NAN, NAN]]])


def test_each_label_asks_for_the_copy_that_says_it(line: Line) -> None:
    published: list[Row] = [
        (1, "01T06:30", 1, 1, NAN, 0),  # says nothing of a sale
        (1, "01T06:30", 3, 1, 1, 1),  # says it two hours later
        (2, "01T06:40", 1, 0, 0, 1),
    ]
    joins, _ = joins_of(line, "2026-03-02T06", line.trained("2026-03-01T09", published))
    asked: list[Row] = [(1, "01T06:30", 0, 1, 1, 1), (2, "01T06:40", 0, 0, 1, 1)]
    sale, visit = found(joins, asked)
    same(sale, [[3, 1], [1, 0]])
    same(visit, [[1, 0], [1, 1]])


def test_each_label_looks_as_far_back_as_it_says(line: Line) -> None:
    last = line.trained("2026-03-01T09", [(1, "01T08:30", 0.5, 1, 1, 1)])
    joins, _ = joins_of(line, "2026-03-02T20", last)
    sale, visit = found(joins, [(1, "01T08:30", 0, 1, 1, 1)])
    same(sale, [[NAN, NAN]])
    same(visit, [[0.5, 1]])


def test_what_is_sealed_of_a_window_is_taken_back_for_every_label(line: Line) -> None:
    """In windows of an hour copies of the same window are far; a warm start is one long window."""
    rows: list[Row] = [(1, "01T01:00", 1, 1, NAN, 1), (2, "01T01:10", 1, 0, 0, 1)]
    asked: list[Row] = [(1, "01T01:00", 0, 1, 1, 1), (2, "01T01:10", 0, 0, 0, 0)]
    key = "warm-2026-03-01T00"
    span = SimpleNamespace(
        window=key,
        start=datetime.fromisoformat("2026-03-01T00Z"),
        end=datetime.fromisoformat("2026-03-05T00Z"),
    )
    chain: Any = line
    through, again = (LabelJoins(chain, spec(1), SOURCES) for _ in range(2))
    plan: Any = span
    for joins in (through, again):
        joins.begin(plan, None)
    through.add(minibatch("stream", rows))
    again.resume(plan, line.write(key, rows))
    one, other = found(through, asked), found(again, asked)
    same(one, other)
    sale, visit = one
    same(sale, [[NAN, NAN], [1, 1]])
    same(visit, [[1, 1], [1, 0]])
