"""Runs in closed form equal the row-by-row definition of Primus (ATC'25) Eq. 4 and Algorithm 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cpu_limits import cpu_limit

from forebay.mixture.queue.priority import priority, take

Runs = list[tuple[int, int]]
Case = tuple[list[float], list[int], int, float | list[float]]


def row_by_row(
    weights: Sequence[float], queued: Sequence[int], rows_max: int, unit: float | Sequence[float]
) -> Runs:
    """The definition, without a line of the code under test."""
    left = list(queued)
    units = list(unit) if isinstance(unit, Sequence) else [unit] * len(left)
    runs: Runs = []
    for _ in range(rows_max):
        scores = [
            w * (1 / (1 + math.exp(-(q / u)))) if q else -1.0
            for w, q, u in zip(weights, left, units, strict=True)
        ]
        if not scores or max(scores) < 0:
            break
        winner = scores.index(max(scores))
        left[winner] -= 1
        if runs and runs[-1][0] == winner:
            runs[-1] = (winner, runs[-1][1] + 1)
        else:
            runs.append((winner, 1))
    return runs


WEIGHTS = st.one_of(
    st.sampled_from([1.0, 1.0, 1.0, 1.0000000001, 1.001, 1.1, 1.368, 2.0, 10.0]),
    st.floats(0.01, 100.0),
    st.sampled_from([1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)]),
)
ROWS = st.one_of(st.integers(0, 5), st.integers(30, 45), st.integers(0, 400))
UNITS = st.one_of(st.sampled_from([0.5, 1.0, 2.0, 1000.0, 1e18]), st.floats(0.5, 1000.0))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 18))
    weights = draw(st.lists(WEIGHTS, min_size=count, max_size=count))
    queued = draw(st.lists(ROWS, min_size=count, max_size=count))
    unit = draw(st.one_of(UNITS, st.lists(UNITS, min_size=count, max_size=count)))
    return weights, queued, draw(st.integers(0, 600)), unit


@settings(max_examples=400, deadline=None)
@given(cases())
def test_runs_expand_to_the_row_by_row_order(case: Case) -> None:
    weights, queued, rows_max, unit = case
    runs = take(weights, queued, rows_max, unit)
    assert runs == row_by_row(weights, queued, rows_max, unit)
    assert all(one != other for (one, _), (other, _) in pairwise(runs))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_values_that_mean_nothing_are_refused(bad: float) -> None:
    for call in (
        lambda: take([1.0, bad], [1, 1], 1),
        lambda: take([bad], [1], 1),
        lambda: take([1.0], [1], 1, bad),
        lambda: take([1.0, 1.0], [1, 1], 1, [1.0, bad]),
        lambda: take([], [], 1, bad),
    ):
        with pytest.raises(ValueError, match="finite and greater than 0"):
            call()


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not match"):
        take([1.0], [1, 2], 1)
    with pytest.raises(ValueError, match="do not match"):
        take([1.0, 1.0], [1, 2], 1, [1.0])
    with pytest.raises(ValueError, match="-1"):
        take([1.0], [-1], 1)
    with pytest.raises(ValueError, match="rows_max"):
        take([1.0], [1], -1)


def test_extreme_units_neither_overflow_nor_lose_rows() -> None:
    assert take([1.0, 1.0], [10**9, 3], 10**9 + 3, 1e-300) == [(0, 10**9), (1, 3)]
    runs = take([1.0, 2.0], [200, 100], 300, 1e300)
    assert sum(rows for _, rows in runs) == 300
    assert runs == row_by_row([1.0, 2.0], [200, 100], 300, 1e300)


@pytest.mark.parametrize(("weights", "runs_max"), [([1.0, 1.0], 80), ([1.0, 1.0001], 40)])
def test_a_million_queued_rows_cost_runs_and_not_rows(weights: list[float], runs_max: int) -> None:
    with cpu_limit("two million rows", 0.1):
        runs = take(weights, [10**6, 10**6], 2 * 10**6)
    assert sum(rows for _, rows in runs) == 2 * 10**6
    assert len(runs) <= runs_max


def test_a_queue_unit_is_one_row_unless_told_otherwise() -> None:
    assert take([1.0, 1.2], [2, 1], 1) == [(0, 1)], "of two units the other would be first"


def test_the_smallest_weight_there_is_still_has_a_turn() -> None:
    smallest = math.ulp(0.0)
    assert priority(smallest, 1, 1e300) == 0
    assert take([smallest], [1], 1, 1e300) == [(0, 1)]
