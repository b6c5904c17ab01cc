"""Ranges of numbered rows: every row in exactly one, and slices that begin anywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.sources.common.files.bundles import to_tasks
from forebay.datatasks.sources.common.rows.numbered import numbered_ranges, slices
from forebay.datatasks.sources.common.values.times import HOUR_US, Spans
from forebay.datatasks.tasks import DataTask, Position, RowRange
from forebay.system.instants import to_us

START = datetime(2026, 3, 1, tzinfo=UTC)
SPANS = [Interval(START, START + 2 * HOUR), Interval(START + 3 * HOUR, START + 4 * HOUR)]
ROWS = st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 5)), max_size=30)


def planned(rows: list[tuple[int, int]]) -> tuple[dict[int, int], Any]:
    """Numbers with gaps and the hour of each, and the ranges found."""
    numbers = np.cumsum([gap for gap, _ in rows], dtype=np.int64)
    hours = np.array([hour for _, hour in rows], np.int64)
    ranges = numbered_ranges(numbers, to_us(START) + hours * HOUR_US, Spans(SPANS))
    return dict(zip(numbers.tolist(), hours.tolist(), strict=True)), ranges


@given(ROWS)
def test_each_row_of_the_spans_is_in_one_range_of_its_hour(rows: list[tuple[int, int]]) -> None:
    hours, ranges = planned(rows)
    found = [
        (number, [0, 3][span] + hour)
        for span, hour, first, end in zip(
            ranges.span, ranges.hour, ranges.first, ranges.end, strict=True
        )
        for number in range(first, end)
    ]
    assert found == [(number, hour) for number, hour in hours.items() if hour in {0, 1, 3}]
    every = list(zip(ranges.span, ranges.hour, ranges.first, ranges.end, strict=True))
    assert not any((*one[:2], one[3]) == other[:3] for one, other in pairwise(every)), (
        "neighbours are one range"
    )


@given(ROWS, st.integers(1, 5), st.data())
def test_slices_go_on_from_any_position(
    rows: list[tuple[int, int]], rows_max: int, data: Any
) -> None:
    _, ranges = planned(rows)
    for row in to_tasks(ranges, pa.array(["t"])).to_pylist():
        task = DataTask.of_row(row, "t/0", "t", "w", Interval(START, START + 4 * HOUR))
        every = [
            (each.part, number) for each in slices(task, None, rows_max) for number in each.rows
        ]
        ends = [each.end for each in slices(task, None, rows_max)]
        assert every == [
            (part, number)
            for part, each in enumerate(task.ranges)
            for number in range(each.first, each.end)
        ]
        assert ends[-1] == Position(len(task.ranges), 0)
        start = data.draw(st.sampled_from([*ends, *(Position(*place) for place in every)]))
        again = [
            (each.part, number) for each in slices(task, start, rows_max) for number in each.rows
        ]
        assert again == [place for place in every if place >= start]


def test_a_position_says_nothing_of_later_ranges_with_smaller_numbers() -> None:
    parts = [
        RowRange(path="t", first=first, end=end, rows=5, size_bytes=0)
        for first, end in ((5, 10), (0, 5))
    ]
    row = {"hour": 0, "partition": "", "rows": 10, "cut": False, "ranges": []}
    task = DataTask.of_row(row, "t/0", "t", "w", Interval(START, START + HOUR))
    found = list(slices(task.model_copy(update={"ranges": tuple(parts)}), Position(0, 8), 100))
    assert [each.rows.tolist() for each in found] == [[8, 9], [0, 1, 2, 3, 4]]
