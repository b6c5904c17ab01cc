"""Joins of several labels: each looks for copies that have it, as far back as it declares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.label_lines import SOURCES, SegmentLine, begin, joining_pipeline, same, timed_rows
from support.there import there

from forebay.executors.label_join.join import LabelJoins
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import ScoreWriter
from forebay.mixture.minibatch import LabelRows, Minibatch

NAN = math.nan
Row = tuple[int, str, float, float, float, float]  # event id, time, wait in hours, three labels
FURTHER = ["sale", "visit"]
NAMES = ["mixture", "sale:mixture", "visit:mixture"]
LABELS = {
    "named_labels": {
        "click": {"column": "clicked", "delay": "none"},
        "sale": {"column": "clicked", "greater_than": 1},
        "visit": {"column": "clicked", "greater_than": 2, "label_join": "48h"},
    }
}


def minibatch(feed: Any, rows: Sequence[Row]) -> Minibatch:
    ids, times, hours, first, *others = zip(*rows, strict=True)
    return replace(
        timed_rows(feed, ids, first, times),
        waits=np.array(hours, np.float32) * 3600,
        further=tuple(LabelRows(np.array(each, np.float32)) for each in others),
    )


class Line(SegmentLine):
    def write(self, key: str, rows: Sequence[Row], held: Any = None) -> Path:
        writer = ScoreWriter(self.root / key, NAMES, {}, 0, FURTHER)
        learnt = minibatch("stream", rows).after_guards(held)
        writer.append(learnt, np.zeros((len(rows), 3), np.float32))
        writer.seal()
        return self.root / key

    def trained(self, key: str, rows: Sequence[Row], held: Any = None) -> Link:
        self.write(key, rows, held)
        return self.linked(key)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(tmp_path, monkeypatch)


def joins_of(line: Line, key: str, before: Link | None, count: int = 2) -> tuple[LabelJoins, Any]:
    chain: Any = line
    joins = LabelJoins(chain, joining_pipeline(LABELS, count=count), SOURCES)
    return joins, begin(joins, key, before)


def found(joins: LabelJoins, rows: Sequence[Row]) -> list[list[list[float]]]:
    """(wait in hours, known) of each row, by label that is joined."""
    asked = minibatch("batch", rows)
    joined = joins.joined(replace(asked, waits=np.full(len(rows), NAN, np.float32)))
    assert joined.known is None  # of clicks, which no variant corrects
    return [
        np.stack([there(each.waits) / 3600, there(each.known)], axis=1).tolist()
        for each in joined.further
    ]


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
    key = "2026-03-01_2026-03-05T00"
    through, _ = joins_of(line, key, None, 1)
    again, plan = joins_of(line, key, None, 1)
    through.add(minibatch("stream", rows))
    again.resume(plan, line.write(key, rows))
    one, other = found(through, asked), found(again, asked)
    same(one, other)
    sale, visit = one
    same(sale, [[NAN, NAN], [1, 1]])
    same(visit, [[1, 1], [1, 0]])
