"""Intervals over seeds and of losses: what has to hold whatever the figures are."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.mixture.metrics.auc import estimate_auc
from forebay.mixture.metrics.estimate import NORMAL_QUANTILE
from forebay.mixture.metrics.losses import LossEstimate, estimate_losses, pool_losses
from forebay.mixture.metrics.probabilities import log_loss, normalised_entropy
from forebay.mixture.metrics.seeds import mean_over_seeds

Arrays = tuple[np.ndarray, np.ndarray]
SHARES = st.integers(0, 20).map(lambda share: share / 20)


@st.composite
def measured(draw: st.DrawFn) -> Arrays:
    """Figures of some seeds, and a covariance that some rows could have given."""
    seeds = draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(SHARES, min_size=seeds, max_size=seeds), min_size=2, max_size=8))
    table = np.array(rows) / 10
    covariance = np.atleast_2d(np.cov(table, rowvar=False)) / len(table)
    return table.mean(axis=0), covariance


@given(measured())
def test_the_interval_is_never_narrower_than_over_rows_alone(found: Arrays) -> None:
    values, covariance = found
    mean, rows = mean_over_seeds(values, covariance), max(0.0, float(covariance.mean()))
    assert mean.value == pytest.approx(values.mean())
    assert mean.reach >= NORMAL_QUANTILE * np.sqrt(rows) - 1e-12
    if len(values) < 3:
        assert mean.reach == pytest.approx(NORMAL_QUANTILE * np.sqrt(rows))


@given(measured(), st.randoms())
def test_the_order_of_seeds_does_not_matter(found: Arrays, by: object) -> None:
    values, covariance = found
    order = list(range(len(values)))
    by.shuffle(order)
    again = mean_over_seeds(values[order], covariance[np.ix_(order, order)])
    assert again.reach == pytest.approx(mean_over_seeds(values, covariance).reach)


@given(measured())
def test_seeds_that_are_further_apart_widen_it(found: Arrays) -> None:
    values, covariance = found
    if len(values) < 3:
        return
    centre = values.mean()
    wider = mean_over_seeds(centre + 3 * (values - centre), covariance)
    assert wider.reach >= mean_over_seeds(values, covariance).reach - 1e-12


def test_the_interval_over_seeds_covers_the_truth_95_times_in_a_hundred() -> None:
    """Seeds of their own quality, on rows of their own: neither part alone would do."""
    spread = 2 * (1 + 0.3**2)  # of two normals: mean over qualities
    below = NormalDist().cdf
    truth = below(1 / np.sqrt(spread + 0.35**2)) - below(1 / np.sqrt(spread))
    drawn = np.random.default_rng(11)
    inside = narrow = 0
    for _ in range(400):
        labels = (drawn.random(300) < 0.4).astype(np.float32)
        signal = labels + drawn.normal(size=300)
        quality, noise = drawn.normal(scale=0.35, size=4), drawn.normal(size=(300, 4))
        scores = signal[:, np.newaxis] + quality * labels[:, np.newaxis] + 0.3 * noise
        base = signal + 0.3 * drawn.normal(size=300)
        found = estimate_auc(labels, np.column_stack([scores, np.tile(base, (4, 1)).T]))
        assert found is not None
        one = found.difference((0, 1, 2, 3), (4, 5, 6, 7))
        inside += one.low <= truth <= one.high
        alone = found.difference(0, 4)
        narrow += alone.low <= truth <= alone.high
    assert 0.92 <= inside / 400 <= 0.99
    assert narrow / 400 < 0.9, "one seed alone claims too much"


@st.composite
def scored(draw: st.DrawFn) -> Arrays:
    rows = draw(st.integers(3, 30))
    labels = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), np.float32)
    flat = draw(st.lists(SHARES, min_size=2 * rows, max_size=2 * rows))
    return labels, np.array(flat, np.float32).reshape(rows, 2)


@given(scored())
def test_losses_are_those_of_the_plain_formulas(found: Arrays) -> None:
    labels, scores = found
    one = estimate_losses(labels, scores)
    if normalised_entropy(labels, scores[:, 0]) is None:
        assert one is None
        return
    assert one is not None
    for column in range(2):
        interval = one.interval(column)
        assert interval.value == pytest.approx(log_loss(labels, scores[:, column]))
        assert interval.low <= interval.value <= interval.high
        normalised = one.normalised().interval(column)
        assert normalised.value == pytest.approx(normalised_entropy(labels, scores[:, column]))
    there, back = one.difference(0, 1), one.difference(1, 0)
    assert (there.value, there.low) == pytest.approx((-back.value, -back.high))
    assert there.excludes_zero == one.normalised().difference(0, 1).excludes_zero


@settings(max_examples=50)
@given(st.lists(scored(), min_size=1, max_size=4))
def test_pooled_losses_are_those_of_all_rows(windows: list[tuple[np.ndarray, np.ndarray]]) -> None:
    estimates = [estimate_losses(*window) for window in windows]
    kept = [window for window, one in zip(windows, estimates, strict=True) if one is not None]
    pooled = pool_losses(estimates)
    if not kept:
        assert pooled is None
        return
    assert isinstance(pooled, LossEstimate)
    labels = np.concatenate([labels for labels, _ in kept])
    scores = np.concatenate([scores for _, scores in kept])
    assert pooled.rows == len(labels)
    assert pooled.interval(1).value == pytest.approx(log_loss(labels, scores[:, 1]))
