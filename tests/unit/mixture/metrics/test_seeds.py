"""Intervals over seeds against the published formula, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from forebay.mixture.metrics.auc import AucEstimate, estimate_auc
from forebay.mixture.metrics.estimate import Estimate, student_quantile
from forebay.mixture.metrics.seeds import difference_of, mean_over_seeds


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.5, 20, 80, 1e6])
def test_the_quantile_is_students(degrees: float) -> None:
    assert student_quantile(degrees) == pytest.approx(t.ppf(0.975, degrees), abs=0.0005)
    assert student_quantile(degrees + 0.9) >= t.ppf(0.975, degrees + 1) - 0.0005


def test_three_seeds_count_with_the_degrees_of_hillis() -> None:
    values = np.array([0.70, 0.72, 0.74])
    covariance = np.full((3, 3), 0.0001) + np.eye(3) * 0.00005
    found, training = mean_over_seeds(values, covariance), 0.0004 / 3
    variance = training + 0.0001
    degrees = variance**2 / (training**2 / 2)
    assert found.value == pytest.approx(0.72)
    assert found.reach == pytest.approx(student_quantile(degrees) * math.sqrt(variance))
    assert found.reach == pytest.approx(t.ppf(0.975, 6) * math.sqrt(variance), rel=0.001)


def test_seeds_that_happen_to_agree_do_not_narrow_the_interval() -> None:
    covariance = np.eye(4) * 0.0004
    found = mean_over_seeds(np.full(4, 0.7), covariance)
    assert found.reach == pytest.approx(norm.ppf(0.975) * 0.01)
    near = mean_over_seeds(0.7 + np.array([0, 1, -1, 0]) * 1e-6, covariance)
    assert near.reach == pytest.approx(norm.ppf(0.975) * 0.01, rel=1e-3)
    apart = np.array([[0.0004, -0.0001, 0], [-0.0001, 0.0004, 0], [0, 0, 0.0004]])
    below = mean_over_seeds(np.array([0.6, 0.7, 0.8]), apart)
    assert below.reach == pytest.approx(t.ppf(0.975, 2) * math.sqrt(0.01 / 3), rel=1e-3)


def test_two_seeds_say_nothing_of_training() -> None:
    covariance = np.array([[0.0004, 0.0002], [0.0002, 0.0004]])
    found = mean_over_seeds(np.array([0.6, 0.8]), covariance)
    assert (found.value, found.seeds) == (pytest.approx(0.7), 2)
    assert found.reach == pytest.approx(norm.ppf(0.975) * math.sqrt(0.0003))
    assert Estimate(0.1, 0, 1, seeds=2).covers == "rows only"
    assert Estimate(0.1, 0, 1, seeds=3).covers == "rows and 3 seeds"


def test_differences_are_taken_seed_by_seed() -> None:
    values = np.array([0.70, 0.60, 0.80, 0.69, 0.61, 0.78])
    found = difference_of(values, np.zeros((6, 6)), (0, 1, 2), (3, 4, 5))
    spread = np.std([0.01, -0.01, 0.02], ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(0.02 / 3)
    assert found.reach == pytest.approx(t.ppf(0.975, 2) * spread, rel=1e-4)
    with pytest.raises(ValueError, match="2 seeds against 1"):
        difference_of(values, np.zeros((6, 6)), (0, 1), 2)


def test_auc_over_seeds_stays_a_probability_and_says_how_many_seeds() -> None:
    random, labels = np.random.default_rng(5), np.array([0, 1] * 20)
    scores = labels[:, np.newaxis] * 3.0 + random.normal(size=(40, 3))
    found = estimate_auc(labels, scores)
    assert found is not None
    one = found.interval((0, 1, 2))
    assert (one.seeds, one.high <= 1.0) == (3, True)
    assert one.value == pytest.approx(found.values.mean())
    perfect = AucEstimate(np.ones(3), np.zeros((3, 3)), 4, 9, 36)
    assert perfect.interval((0, 1, 2)) == Estimate(1.0, 0.025**0.25, 1.0, seeds=3)
