"""Floors: the least share holds while rows are waiting, and no row is lost or made up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.mixture.queue.floor import FlooredPriority
from forebay.mixture.queue.priority import take

ROWS = st.lists(st.integers(0, 300), min_size=4, max_size=4)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.lists(st.integers(1, 100), min_size=1, max_size=12))
def test_runs_never_take_what_is_not_there(queued: list[int], requests: list[int]) -> None:
    priority = FlooredPriority([1.0, 4.0, 2.0, 1.0], [0, 0, 1, 2], [0.2, 0.0, 0.3], 1.0)
    left = list(queued)
    for rows_max in requests:
        before, runs = list(left), priority.take(left, rows_max)
        for buffer, rows in runs:
            assert rows > 0
            left[buffer] -= rows
        assert min(left) >= 0
        assert sum(before) - sum(left) == min(rows_max, sum(before))
        priority.served(before, runs)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 0.9), st.integers(1, 64))
def test_a_starved_stream_gets_its_floor(floor: float, rows_max: int) -> None:
    priority = FlooredPriority([100.0, 1.0], [0, 1], [0.0, floor])
    queued = [10**6, 10**6]
    got = total = 0
    while total < 4_000:
        runs = priority.take(queued, rows_max)
        priority.served(queued, runs)
        got += sum(rows for buffer, rows in runs if buffer == 1)
        total += sum(rows for _, rows in runs)
        assert abs(got - floor * total) <= rows_max + 1
    assert got >= floor * total - 1


def test_without_floors_it_is_the_priority_alone() -> None:
    weights, queued = [1.0, 1.01, 3.0], [50, 60, 70]
    priority = FlooredPriority(weights, [0, 1, 2], [0.0, 0.0, 0.0], 5.0)
    assert priority.take(queued, 120) == take(weights, queued, 120, 5.0)


def test_a_stream_that_was_empty_is_owed_nothing() -> None:
    priority = FlooredPriority([100.0, 1.0], [0, 1], [0.0, 0.5])
    for _ in range(100):
        priority.served([1_000, 0], [(0, 10)])
    runs = priority.take([1_000, 1_000], 10)
    assert sum(rows for buffer, rows in runs if buffer == 1) == 5


@pytest.mark.parametrize("floors", [[1.0], [-0.1], [0.6, 0.6]])
def test_floors_that_cannot_hold_are_refused(floors: list[float]) -> None:
    with pytest.raises(ValueError, match="floors"):
        FlooredPriority([1.0] * len(floors), range(len(floors)), floors)


def test_a_queue_unit_is_one_row_unless_told_otherwise() -> None:
    assert FlooredPriority([1.0, 1.2], [0, 1], [0.0, 0.0]).take([2, 1], 1) == [(0, 1)]
