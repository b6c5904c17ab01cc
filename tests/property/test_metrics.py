"""AUC and its intervals against the definitions and against a bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.mixture.metrics.auc import estimate_auc, pool
from forebay.mixture.metrics.probabilities import calibration, log_loss, normalised_entropy

Data = tuple[np.ndarray, np.ndarray]


@st.composite
def labelled_scores(draw: st.DrawFn, vectors: int = 2) -> Data:
    """Few distinct scores, so that ties are common."""
    rows = draw(st.integers(4, 40))
    labels = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    scores = draw(
        st.lists(
            st.lists(st.integers(0, 9), min_size=vectors, max_size=vectors),
            min_size=rows,
            max_size=rows,
        )
    )
    return np.array(labels, dtype=np.float32), np.array(scores, dtype=np.float32) / 10


def psi(labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Mann-Whitney kernel of every (positive, negative) pair: the O(n^2) definition."""
    positives, negatives = scores[labels > 0.5], scores[labels <= 0.5]
    gap = positives[:, None] - negatives[None, :]
    return np.where(gap > 0, 1.0, np.where(gap == 0, 0.5, 0.0))


def delong_covariance(first: np.ndarray, second: np.ndarray) -> float:
    """DeLong's covariance of two AUCs, from the kernels."""
    m, n = first.shape
    s10 = np.cov(first.mean(axis=1), second.mean(axis=1), ddof=1)[0, 1]
    return float(s10 / m + np.cov(first.mean(axis=0), second.mean(axis=0), ddof=1)[0, 1] / n)


@given(labelled_scores())
def test_auc_and_covariance_equal_the_quadratic_definition(data: Data) -> None:
    labels, scores = data
    found, positives = estimate_auc(labels, scores), int(labels.sum())
    if positives in (0, len(labels)):
        assert found is None
        return
    assert found is not None
    kernels = [psi(labels, scores[:, column]) for column in range(2)]
    assert found.pairs == kernels[0].size
    np.testing.assert_allclose(found.values, [k.mean() for k in kernels], atol=1e-12)
    if 1 < positives < len(labels) - 1:
        expected = [[delong_covariance(a, b) for b in kernels] for a in kernels]
        np.testing.assert_allclose(found.covariance, expected, atol=1e-12)
    else:
        assert (np.diag(found.covariance) >= 0.25 / max(positives, 1) - 1e-12).any()


@given(labelled_scores())
def test_the_interval_holds_the_value_and_stays_a_probability(data: Data) -> None:
    found = estimate_auc(*data)
    if found is None:
        return
    for column in range(2):
        one = found.interval(column)
        assert 0.0 <= one.low <= one.value + 1e-12
        assert one.value - 1e-12 <= one.high <= 1.0
    difference, back = found.difference(0, 1), found.difference(1, 0)
    assert difference.value == pytest.approx(-back.value)
    assert difference.low == pytest.approx(-back.high)


@given(labelled_scores(1))
def test_auc_ignores_the_scale_of_scores_and_the_order_of_rows(data: Data) -> None:
    labels, scores = data
    found = estimate_auc(labels, scores)
    shuffled = np.random.default_rng(0).permutation(len(labels))
    again = estimate_auc(labels[shuffled], np.exp(3 * scores[shuffled]))
    assert (found is None) == (again is None)
    if found is not None and again is not None:
        np.testing.assert_allclose(found.values, again.values, atol=1e-12)
        np.testing.assert_allclose(found.covariance, again.covariance, atol=1e-12)


def drawn(rows: int, seed: int, gap: float = 1.0) -> Data:
    """Two correlated score vectors, the first a little better."""
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.3).astype(np.float32)
    shared = labels * gap + random.normal(size=rows)
    return labels, np.stack([shared, shared + 0.5 * random.normal(size=rows)], axis=1)


def test_the_interval_covers_the_truth_95_times_in_a_hundred() -> None:
    truth = 0.7602499389065233  # Phi(1 / sqrt 2): two normals one standard deviation apart
    inside = 0
    for seed in range(400):
        found = estimate_auc(*drawn(200, seed))
        assert found is not None
        one = found.interval(0)
        inside += one.low <= truth <= one.high
    assert 0.92 <= inside / 400 <= 0.98


@settings(max_examples=50)
@given(st.lists(labelled_scores(), min_size=1, max_size=5))
def test_pooled_auc_counts_pairs_of_the_same_window_only(
    windows: list[tuple[np.ndarray, np.ndarray]],
) -> None:
    kernels = [psi(labels, scores[:, 0]) for labels, scores in windows]
    pairs = sum(kernel.size for kernel in kernels)
    pooled = pool(estimate_auc(*window) for window in windows)
    if pairs == 0:
        assert pooled is None
        return
    assert pooled is not None
    assert pooled.pairs == pairs
    assert pooled.values[0] == pytest.approx(sum(kernel.sum() for kernel in kernels) / pairs)


def test_a_base_rate_that_moves_with_the_day_does_not_leak_into_the_pool() -> None:
    random, windows = np.random.default_rng(1), []
    for rate in (0.05, 0.5):
        labels = (random.random(20_000) < rate).astype(np.float32)
        windows.append((labels, np.full(len(labels), rate) + 0.01 * random.normal(size=20_000)))
    together = estimate_auc(
        np.concatenate([labels for labels, _ in windows]),
        np.concatenate([scores for _, scores in windows]),
    )
    assert together is not None
    assert together.interval(0).low > 0.7  # looks like skill
    pooled = pool(estimate_auc(*window) for window in windows)
    assert pooled is not None
    assert pooled.values[0] == pytest.approx(0.5, abs=0.02)


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        estimate_auc(np.array([0.0, 1.0]), np.array([0.1, np.nan]))
    with pytest.raises(ValueError, match="2 labels for 3 rows"):
        estimate_auc(np.array([0.0, 1.0]), np.array([0.1, 0.2, 0.3]))


@given(labelled_scores(1))
def test_log_loss_entropy_and_calibration_follow_their_formulas(data: Data) -> None:
    labels, scores = data
    p = np.clip(scores[:, 0].astype(float), 1e-7, 1 - 1e-7)
    expected = -np.mean([np.log(q) if y else np.log(1 - q) for y, q in zip(labels, p, strict=True)])
    assert log_loss(labels, scores[:, 0]) == pytest.approx(expected)
    rate = labels.mean()
    if rate in (0.0, 1.0):
        assert normalised_entropy(labels, scores[:, 0]) is None
    else:
        always = log_loss(labels, np.full(len(labels), float(rate)))
        assert always is not None
        assert normalised_entropy(labels, scores[:, 0]) == pytest.approx(expected / always)
    if labels.sum() == 0:
        assert calibration(labels, scores[:, 0]) is None
    else:
        found = calibration(labels, scores[:, 0])
        assert found == pytest.approx(scores[:, 0].astype(float).sum() / labels.sum())


def test_many_rows_give_a_narrow_interval() -> None:
    labels, scores = drawn(300_000, seed=9)
    found = estimate_auc(labels, scores)
    assert found is not None
    assert found.interval(0).high - found.interval(0).low < 0.01
