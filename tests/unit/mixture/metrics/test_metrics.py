"""Figures of a few rows by hand: edge cases of each formula, and their results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from support.there import there

from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.probabilities import calibration, log_loss, normalised_entropy


@pytest.mark.parametrize(
    ("low", "high", "excludes"),
    [(0.0, 1.0, False), (0.1, 1.0, True), (-1.0, 0.0, False), (-1.0, -0.1, True), (-1, 1, False)],
)
def test_an_interval_that_touches_zero_does_not_exclude_it(
    low: float, high: float, excludes: bool
) -> None:
    assert Estimate(0.0, low, high).excludes_zero is excludes


def auc(value: float, variance: float, positives: int = 50, negatives: int = 40) -> AucEstimate:
    matrix = np.array([[variance, 0.0], [0.0, variance / 4]])
    return AucEstimate(np.array([value, 0.5]), matrix, positives, negatives, positives * negatives)


def test_an_interval_is_symmetric_on_the_logit_scale() -> None:
    reach, found = norm.ppf(0.975) * 0.1 / (0.8 * 0.2), auc(0.8, 0.01).interval(0)
    centre = math.log(0.8 / 0.2)
    wanted = [1 / (1 + math.exp(-(centre + sign * reach))) for sign in (-1, 1)]
    assert (found.value, found.low, found.high) == pytest.approx((0.8, *wanted))


@pytest.mark.parametrize(("positives", "negatives", "pairs"), [(7, 3, 3), (2, 9, 2), (1, 1, 1)])
def test_certainty_is_not_claimed_at_the_ends(positives: int, negatives: int, pairs: int) -> None:
    bound = 0.025 ** (1 / pairs)
    assert auc(1.0, 0.0, positives, negatives).interval(0) == Estimate(1.0, bound, 1.0)
    assert auc(0.0, 0.0, positives, negatives).interval(0) == Estimate(0.0, 0.0, 1.0 - bound)


def test_a_difference_takes_what_both_have_in_common_off() -> None:
    covariance = np.array([[0.04, 0.01], [0.01, 0.03]])
    found = AucEstimate(np.array([0.7, 0.6]), covariance, 5, 5, 25).difference(0, 1)
    reach = norm.ppf(0.975) * math.sqrt(0.05)
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
    assert log_loss(np.array([]), np.array([])) is pool([None]) is pool([]) is None


def test_a_certain_wrong_answer_costs_a_finite_loss() -> None:
    assert log_loss(np.array([1]), np.array([0.0])) == pytest.approx(-math.log(1e-7))
    assert log_loss(np.array([0]), np.array([1.0])) == pytest.approx(-math.log(1e-7), rel=1e-6)
    assert log_loss(np.array([1]), np.array([1e-6])) == pytest.approx(-math.log(1e-6))


def test_windows_are_pooled_by_their_pairs() -> None:
    first, second = auc(0.8, 0.01, 1, 3), auc(0.6, 0.02, 3, 3)
    found = there(pool([first, None, second]))
    assert found.values[0] == pytest.approx(0.25 * 0.8 + 0.75 * 0.6)
    assert found.covariance[0, 0] == pytest.approx(0.25**2 * 0.01 + 0.75**2 * 0.02)
    assert (found.positives, found.negatives, found.pairs) == (4, 6, 12)
