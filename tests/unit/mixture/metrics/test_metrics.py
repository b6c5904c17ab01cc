"""Figures of a few rows by hand, intervals over seeds by the published formula, calibration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy  # its parts are imported where they are used
from hypothesis import given
from hypothesis import strategies as st
from support.there import there

from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.calibration_curve import BINS, CalibrationCurve, added, wilson
from forebay.mixture.metrics.estimate import Estimate, student_quantile
from forebay.mixture.metrics.probabilities import calibration, log_loss, normalised_entropy
from forebay.mixture.metrics.seeds import difference_of, mean_over_seeds


def test_an_interval_that_touches_zero_does_not_exclude_it() -> None:
    bounds = [(0.0, 1.0), (-1.0, 0.0), (-1, 1), (0.1, 1.0), (-1.0, -0.1)]
    assert [Estimate(0.0, *each).excludes_zero for each in bounds] == [False] * 3 + [True] * 2


def auc(value: float, variance: float, positives: int = 50, negatives: int = 40) -> AucEstimate:
    matrix = np.array([[variance, 0.0], [0.0, variance / 4]])
    return AucEstimate(np.array([value, 0.5]), matrix, positives, negatives, positives * negatives)


def test_an_interval_is_symmetric_on_the_logit_scale_and_not_certain_at_the_ends() -> None:
    reach, found = scipy.stats.norm.ppf(0.975) * 0.1 / (0.8 * 0.2), auc(0.8, 0.01).interval(0)
    centre = math.log(0.8 / 0.2)
    wanted = [1 / (1 + math.exp(-(centre + sign * reach))) for sign in (-1, 1)]
    assert (found.value, found.low, found.high) == pytest.approx((0.8, *wanted))
    for positives, negatives, pairs in ((7, 3, 3), (2, 9, 2), (1, 1, 1)):
        bound = 0.025 ** (1 / pairs)
        assert auc(1.0, 0.0, positives, negatives).interval(0) == Estimate(1.0, bound, 1.0)
        assert auc(0.0, 0.0, positives, negatives).interval(0) == Estimate(0.0, 0.0, 1.0 - bound)


def test_a_difference_takes_what_both_have_in_common_off() -> None:
    covariance = np.array([[0.04, 0.01], [0.01, 0.03]])
    found = AucEstimate(np.array([0.7, 0.6]), covariance, 5, 5, 25).difference(0, 1)
    reach = scipy.stats.norm.ppf(0.975) * math.sqrt(0.05)
    assert found.value == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1 - reach, 0.1 + reach))
    same = AucEstimate(np.array([0.7, 0.7]), np.full((2, 2), 0.04), 5, 5, 25).difference(0, 1)
    assert (same.low, same.high) == (0.0, 0.0)
    rounded = np.array([[0.04, 0.0401], [0.0401, 0.04]])
    same = AucEstimate(np.array([0.7, 0.7]), rounded, 5, 5, 25).difference(0, 1)
    assert (same.low, same.high) == (0.0, 0.0), "a variance that rounding makes negative is none"


def test_one_row_of_a_class_counts_with_the_largest_variance() -> None:
    scores = np.array([[0.6, 0.3], [0.5, 0.5], [0.7, 0.7]])
    found = there(estimate_auc(np.array([1, 0, 0]), scores))
    assert (found.positives, found.negatives, found.pairs) == (1, 2, 2)
    assert found.values.tolist() == [0.5, 0.0]
    # The one positive: 1/4 for each vector; the negatives: their own variance, shared by two.
    np.testing.assert_allclose(found.covariance, [[0.25 + 0.5 / 2, 0.0], [0.0, 0.25]])
    mirrored = there(estimate_auc(np.array([0, 1, 1]), -scores[:, 0]))
    np.testing.assert_allclose(mirrored.covariance, [[0.25 + 0.5 / 2]])


def test_a_label_of_one_half_is_negative() -> None:
    found = there(estimate_auc(np.array([0.5, 0.6]), np.array([0.1, 0.2])))
    assert found.values.tolist() == [1.0]
    assert log_loss(np.array([0.5, 0.6]), np.array([0.2, 0.8])) == pytest.approx(-math.log(0.8))
    assert calibration(np.array([0.5, 0.6]), np.array([0.2, 0.8])) == pytest.approx(1.0)
    quarter = normalised_entropy(np.array([0.5, 0.5, 0.5, 0.6]), np.full(4, 0.25))
    assert quarter == pytest.approx(1.0)


def test_one_class_alone_has_no_auc_entropy_or_calibration() -> None:
    for labels in (np.array([]), np.array([0, 0]), np.array([1, 1])):
        scores = np.array([0.1, 0.2])[: len(labels)]
        assert estimate_auc(labels, scores) is normalised_entropy(labels, scores) is None
        assert (calibration(labels, scores) is None) == (not labels.any())
    assert calibration(np.array([0, 1]), np.array([0.25, 0.5])) == 0.75
    assert log_loss(np.array([0]), np.array([1.0])) == pytest.approx(-math.log(1e-7), rel=1e-6)
    assert log_loss(np.array([]), np.array([])) is pool([None]) is pool([]) is None


def test_windows_are_pooled_by_their_pairs() -> None:
    first, second = auc(0.8, 0.01, 1, 3), auc(0.6, 0.02, 3, 3)
    found = there(pool([first, None, second]))
    assert found.values[0] == pytest.approx(0.25 * 0.8 + 0.75 * 0.6)
    assert found.covariance[0, 0] == pytest.approx(0.25**2 * 0.01 + 0.75**2 * 0.02)
    assert (found.positives, found.negatives, found.pairs) == (4, 6, 12)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.5, 20, 80, 1e6])
def test_the_quantile_is_students(degrees: float) -> None:
    assert student_quantile(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), abs=0.0005)
    assert student_quantile(degrees + 0.9) >= scipy.stats.t.ppf(0.975, degrees + 1) - 0.0005


def test_three_seeds_count_with_the_degrees_of_hillis() -> None:
    values = np.array([0.70, 0.72, 0.74])
    covariance = np.full((3, 3), 0.0001) + np.eye(3) * 0.00005
    found, training = mean_over_seeds(values, covariance), 0.0004 / 3
    variance = training + 0.0001
    degrees = variance**2 / (training**2 / 2)
    assert found.value == pytest.approx(0.72)
    assert found.reach == pytest.approx(student_quantile(degrees) * math.sqrt(variance))
    assert found.reach == pytest.approx(
        scipy.stats.t.ppf(0.975, 6) * math.sqrt(variance), rel=0.001
    )


def test_what_seeds_happen_to_do_does_not_narrow_the_interval() -> None:
    covariance = np.eye(4) * 0.0004
    found = mean_over_seeds(np.full(4, 0.7), covariance)
    assert found.reach == pytest.approx(scipy.stats.norm.ppf(0.975) * 0.01)
    near = mean_over_seeds(0.7 + np.array([0, 1, -1, 0]) * 1e-6, covariance)
    assert near.reach == pytest.approx(scipy.stats.norm.ppf(0.975) * 0.01, rel=1e-3)
    apart = np.array([[0.0004, -0.0001, 0], [-0.0001, 0.0004, 0], [0, 0, 0.0004]])
    below = mean_over_seeds(np.array([0.6, 0.7, 0.8]), apart)
    assert below.reach == pytest.approx(scipy.stats.t.ppf(0.975, 2) * math.sqrt(0.01 / 3), rel=1e-3)
    assert mean_over_seeds(np.array([0.6, 0.8]), np.eye(2)).seeds == 2
    assert Estimate(0.1, 0, 1, seeds=2).covers == "rows only"
    assert Estimate(0.1, 0, 1, seeds=3).covers == "rows and 3 seeds"


def test_differences_are_taken_seed_by_seed() -> None:
    values = np.array([0.70, 0.60, 0.80, 0.69, 0.61, 0.78])
    found = difference_of(values, np.zeros((6, 6)), (0, 1, 2), (3, 4, 5))
    spread = np.std([0.01, -0.01, 0.02], ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(0.02 / 3)
    assert found.reach == pytest.approx(scipy.stats.t.ppf(0.975, 2) * spread, rel=1e-4)
    with pytest.raises(ValueError, match="2 seeds against 1"):
        difference_of(values, np.zeros((6, 6)), (0, 1), 2)


def test_auc_over_seeds_stays_a_probability_and_says_how_many_seeds() -> None:
    random, labels = np.random.default_rng(5), np.array([0, 1] * 20)
    scores = labels[:, np.newaxis] * 3.0 + random.normal(size=(40, 3))
    found = there(estimate_auc(labels, scores))
    one = found.interval((0, 1, 2))
    assert (one.seeds, one.high <= 1.0) == (3, True)
    assert one.value == pytest.approx(found.values.mean())
    perfect = AucEstimate(np.ones(3), np.zeros((3, 3)), 4, 9, 36)
    assert perfect.interval((0, 1, 2)) == Estimate(1.0, 0.025**0.25, 1.0, seeds=3)


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
    assert (added([]).points(), added([]).rows) == ([], (0,) * BINS)


@pytest.mark.parametrize(("positives", "rows"), [(0, 1), (1, 1), (3, 10), (50, 1_000)])
def test_the_interval_is_that_of_wilson(positives: int, rows: int) -> None:
    found = scipy.stats.binomtest(positives, rows).proportion_ci(method="wilson")
    mine = wilson(positives, rows)
    assert (mine.low, mine.high) == pytest.approx((found.low, found.high), abs=1e-9)
