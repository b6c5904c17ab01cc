"""The calibration curve: every row in one point, expected beside observed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forebay.mixture.metrics.calibration_curve import BINS, CalibrationCurve, added, wilson


def drawn(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that come as their scores say."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(1.0, 8.0, rows)
    return (rng.random(rows) < scores).astype(np.float32), scores.astype(np.float32)


def test_where_scores_say_the_truth_the_curve_is_the_diagonal() -> None:
    points = CalibrationCurve.of(*drawn(1, 200_000)).points()
    assert len(points) >= 7
    held = [one.observed.low <= one.expected <= one.observed.high for one in points]
    assert sum(held) >= len(points) - 1
    expected = [one.expected for one in points]
    assert expected == sorted(expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 500), st.integers(1, 12))
def test_every_row_is_in_one_point(seed: int, rows: int, points_max: int) -> None:
    labels, scores = drawn(seed, rows)
    points = CalibrationCurve.of(labels, scores).points(points_max)
    assert len(points) <= points_max + 1
    assert sum(one.rows for one in points) == rows
    assert sum(one.observed.value * one.rows for one in points) == pytest.approx(labels.sum())
    expected = sum(one.expected * one.rows for one in points)
    assert expected == pytest.approx(float(scores.astype(np.float64).sum()), rel=1e-5, abs=1e-5)


def test_curves_of_parts_add_up_to_that_of_the_whole() -> None:
    labels, scores = drawn(3, 1_000)
    parts = [
        CalibrationCurve.of(labels[a : a + 300], scores[a : a + 300]) for a in range(0, 1_000, 300)
    ]
    whole, sums = CalibrationCurve.of(labels, scores), added(parts)
    assert (sums.rows, sums.positives) == (whole.rows, whole.positives)
    assert sums.expected == pytest.approx(whole.expected)


def test_no_rows_make_no_point() -> None:
    assert (added([]).points(), added([]).rows) == ([], (0,) * BINS)


@pytest.mark.parametrize(("positives", "rows"), [(0, 1), (1, 1), (3, 10), (50, 1_000)])
def test_the_interval_is_that_of_wilson(positives: int, rows: int) -> None:
    found = stats.binomtest(positives, rows).proportion_ci(method="wilson")
    mine = wilson(positives, rows)
    assert (mine.low, mine.high) == pytest.approx((found.low, found.high), abs=1e-9)
