"""Small chunks are merged, and numbered rows cut: every row once, in order, by rising hours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.sources import ColumnType
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.sources.common.files.bundles import to_tasks
from forebay.datatasks.sources.common.rows import chunks
from forebay.datatasks.sources.common.rows.chunks import (
    Stored,
    empty_chunk,
    joined,
    place_text,
    stored_rows,
    to_chunk,
)
from forebay.datatasks.sources.common.rows.numbered import numbered_ranges, slices
from forebay.datatasks.sources.common.values.times import HOUR_US, Spans
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, RowRange
from forebay.errors import DataError
from forebay.system.instants import to_us

COLUMNS = {"n": ColumnType.INT, "name": ColumnType.STRING}
Sizes = list[tuple[list[int], int]]


def chunk(hours: Sequence[int], first: int, dead: int = 0) -> Chunk:
    rows = np.arange(first, first + len(hours))
    end = first + len(hours) + dead
    lost = [DeadRow(position=Position(0, end), location={}, reason="") for _ in range(dead)]
    return Chunk(
        batch=pa.record_batch({"n": pa.array(rows)}),
        row_ids=rows + 100,
        parts=np.zeros(len(rows), np.int64),
        rows=rows,
        hours=np.array(hours, np.int32),
        end=Position(0, end),
        dead=tuple(lost),
    )


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 2)), max_size=8),
    st.integers(1, 12),
)
def test_every_row_once_in_order(sizes: Sizes, chunk_rows: int) -> None:
    given_chunks, first = [], 0
    for hours, dead in sizes:
        given_chunks.append(chunk(hours, first, dead))
        first += len(hours) + dead
    last = empty_chunk(["n"], COLUMNS, Position(1, 0))
    found = list(joined(iter(given_chunks), chunk_rows, last))
    rows = [int(row) for each in found for row in each.rows]
    assert rows == [int(row) for each in given_chunks for row in each.rows]
    assert [int(n) for each in found for n in each.row_ids] == [row + 100 for row in rows]
    assert [n for each in found for n in each.batch.column("n").to_pylist()] == rows
    assert sum(len(each.dead) for each in found) == sum(dead for _, dead in sizes)
    hours = [int(hour) for each in found for hour in each.hours]
    stored = [hour for each, _ in sizes for hour in each]
    assert hours == np.maximum.accumulate(np.array([0, *stored]))[1:].tolist()
    assert found[-1].end == Position(1, 0)
    counts = [len(each.rows) + len(each.dead) for each in found]
    largest = max([len(each.rows) + len(each.dead) for each in given_chunks], default=0)
    assert all(count <= max(chunk_rows, largest) for count in counts)
    small = [count * 4 < chunk_rows for count in counts[:-1]]
    following = [len(each.rows) + len(each.dead) for each in found[1:]]
    assert not any(
        is_small and count + after <= chunk_rows and after * 4 < chunk_rows
        for is_small, count, after in zip(small, counts, following, strict=False)
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 12))
def test_nothing_is_read_ahead(sizes: list[int], chunk_rows: int) -> None:
    read = [0]

    def chunks() -> Iterator[Chunk]:
        for size in sizes:
            rows = min(size, stored_rows(chunk_rows))
            read[0] += rows
            yield chunk([0] * rows, read[0] - rows)

    given_out = 0
    for each in joined(chunks(), chunk_rows, empty_chunk(["n"], COLUMNS, Position(1, 0))):
        given_out += len(each.rows)
        assert len(each.rows) <= chunk_rows
        assert read[0] == given_out, "more is read than was given out"


def test_an_end_that_was_reached_is_not_told_twice() -> None:
    last = empty_chunk(["n"], COLUMNS, Position(0, 2))
    (only,) = joined(iter([chunk([0, 0], 0)]), 10, last)
    assert (only.end, len(only.rows)) == (Position(0, 2), 2)
    (nothing,) = joined(iter([]), 10, last)
    assert (nothing.end, len(nothing.rows)) == (Position(0, 2), 0)


def stored(bad: dict[int, str] | None = None) -> Stored:
    n, name = pa.array([1, 2**63, 3, 2**63 + 1], pa.uint64()), pa.array(["a", "b", None, "ü"])
    batch = pa.record_batch({"n": n, "name": name})
    rows = np.array([10, 11, 13, 14])
    return Stored(
        batch=batch,
        part=2,
        rows=rows,
        row_ids=rows * 2,
        hours=np.array([0, 1, 2, 3], np.int32),
        end=Position(2, 15),
        locate=lambda row: {"file": "f", "row": row},
        bad=bad or {},
    )


@pytest.mark.parametrize("policy", ["fail", "dead_letter"])
def test_rows_that_fit_stay_as_they_are(policy: Literal["fail", "dead_letter"]) -> None:
    found = to_chunk(stored(), ["name"], COLUMNS, policy)
    assert found.rows.tolist() == [10, 11, 13, 14]
    assert (found.parts.tolist(), found.end, found.dead) == ([2] * 4, Position(2, 15), ())


def test_rows_that_do_not_fit_leave_as_dead_rows() -> None:
    found = to_chunk(stored({2: "no time"}), ["n", "name"], COLUMNS, "dead_letter")
    assert found.rows.tolist() == [10]
    assert (found.row_ids.tolist(), found.hours.tolist()) == ([20], [0])
    assert [row.position for row in found.dead] == [(2, 11), (2, 13), (2, 14)]
    assert [row.location["row"] for row in found.dead] == [11, 13, 14]
    assert found.dead[1].reason == "no time"
    assert "'n'" in found.dead[0].reason
    assert json.loads(found.dead[2].row or "") == {"n": 2**63 + 1, "name": "ü"}
    assert "ü" in (found.dead[2].row or ""), "as it is written"


def test_the_first_row_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(DataError, match=r"^file f, row 11: column 'n'"):
        to_chunk(stored({2: "no time"}), ["n"], COLUMNS, "fail")
    with pytest.raises(DataError, match=r"^file f, row 10: no time"):
        to_chunk(stored({0: "no time"}), ["n"], COLUMNS, "fail")
    assert place_text({"a": 1, "b": "c"}) == "a 1, b c"


def test_small_chunks_are_joined_until_they_fill_a_quarter() -> None:
    last = empty_chunk(["n"], COLUMNS, Position(0, 9))
    small = [chunk([0, 0, 0], first) for first in (0, 3, 6)]
    assert [len(each.rows) for each in joined(iter(small), 20, last)] == [6, 3]
    fitting = [chunk([0] * 2, 0), chunk([0] * 8, 2)]
    full = empty_chunk(["n"], COLUMNS, Position(0, 10))
    assert [len(each.rows) for each in joined(iter(fitting), 10, full)] == [10]
    halves = [chunk([0] * 5, 0), chunk([0] * 5, 5)]
    assert [len(each.rows) for each in joined(iter(halves), 10, full)] == [5, 5]


def test_few_large_rows_wait_for_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_JOINED_BYTES_MAX", 800)  # of eight bytes a row
    counts = [3, 3, 30, 3, 90, 200, 10, 10, 10]
    given_chunks = [chunk([0] * count, first * 1000) for first, count in enumerate(counts)]
    last = empty_chunk(["n"], COLUMNS, given_chunks[-1].end)
    found = [len(each.rows) for each in joined(iter(given_chunks), 100_000, last)]
    assert found == [36, 93, 200, 30]


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
