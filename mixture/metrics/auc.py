"""AUC with DeLong intervals, paired on the same rows and pooled over windows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.probabilities import Labels, Scores
from forebay.mixture.metrics.seeds import Columns, Floats, difference_of, mean_of

# The largest variance that a value between 0 and 1 can have: used where one row cannot show any.
_LARGEST_VARIANCE = 0.25


@dataclass(frozen=True)
class AucEstimate:
    """AUCs of P score vectors on the same rows, with the covariance of the P estimates.

    DeLong's covariance, by midranks (Sun and Xu 2014): one sort for each vector. `pairs` is the
    weight when windows are pooled: the number of (positive, negative) pairs that it compares, or
    less for an old window.
    """

    values: Floats
    covariance: Floats
    positives: int
    negatives: int
    pairs: float

    def interval(self, columns: Columns) -> Estimate:
        """A variant's AUC with its 95% interval, the mean over its columns (see `seeds`).

        It is computed on the logit scale so that it stays in (0, 1). At exactly 0 or 1, DeLong's
        variance is 0, which would claim certainty: the interval is then that of min(positives,
        negatives) independent pairs that all had the same outcome.
        """
        mean = mean_of(self.values, self.covariance, columns)
        value = mean.value
        if value <= 0.0 or value >= 1.0:
            bound = 0.025 ** (1.0 / min(self.positives, self.negatives))
            low, high = (bound, 1.0) if value >= 1.0 else (0.0, 1.0 - bound)
            return Estimate(value, low, high, mean.seeds)
        reach = mean.reach / (value * (1.0 - value))
        centre = math.log(value / (1.0 - value))
        return Estimate(value, _expit(centre - reach), _expit(centre + reach), mean.seeds)

    def difference(self, first: Columns, second: Columns) -> Estimate:
        """AUC of `first` minus AUC of `second` on the same rows, seed by seed."""
        return difference_of(self.values, self.covariance, first, second).estimate()


def estimate_auc(labels: Labels, scores: Scores) -> AucEstimate | None:
    """AUCs of the columns of `scores` (N or N x P) against `labels`; None with one class only.

    A tie counts one half. A label above 0.5 is a positive.

    Raises:
        ValueError: for labels or scores that are not finite, or of unequal length.
    """
    columns = np.asarray(scores, dtype=np.float64)
    columns = columns[:, np.newaxis] if columns.ndim == 1 else columns
    truth = np.asarray(labels, dtype=np.float64)
    if len(truth) != len(columns):
        raise ValueError(f"{len(truth)} labels for {len(columns)} rows of scores")
    if not (np.isfinite(truth).all() and np.isfinite(columns).all()):
        raise ValueError("labels and scores must be finite")
    positive = truth > 0.5
    m, n = int(positive.sum()), int((~positive).sum())
    if m == 0 or n == 0:
        return None
    placed = [_placements(column, positive) for column in columns.T]
    above = np.stack([negatives for negatives, _ in placed], axis=1) / n
    below = 1.0 - np.stack([positives for _, positives in placed], axis=1) / m
    covariance = _covariance(above) / m + _covariance(below) / n
    return AucEstimate(above.mean(axis=0), covariance, m, n, m * n)


def pool(estimates: Iterable[AucEstimate | None]) -> AucEstimate | None:
    """Mean of the windows' AUCs, weighted by their pairs; None when no window has one.

    Only rows of the same window are compared with each other, so a base rate that moves from day
    to day cannot leak into the figure. Windows are independent samples given the scores.
    """
    present = [estimate for estimate in estimates if estimate is not None]
    if not present:
        return None
    pairs = sum(estimate.pairs for estimate in present)
    shares = [estimate.pairs / pairs for estimate in present]
    weighted = list(zip(shares, present, strict=True))
    return AucEstimate(
        values=np.sum([share * one.values for share, one in weighted], axis=0),
        covariance=np.sum([share**2 * one.covariance for share, one in weighted], axis=0),
        positives=sum(one.positives for one in present),
        negatives=sum(one.negatives for one in present),
        pairs=pairs,
    )


def _placements(column: Floats, positive: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """For each positive, how many negatives are below it; for each negative, how many positives.

    Ties count one half.
    """
    _, level = np.unique(column, return_inverse=True)
    of_positives, of_negatives = level[positive], level[~positive]
    levels = int(level.max()) + 1
    return _below(of_negatives, levels)[of_positives], _below(of_positives, levels)[of_negatives]


def _below(rows: npt.NDArray[np.intp], levels: int) -> Floats:
    """For each level, how many of these rows are below it; those on it count one half."""
    counts = np.bincount(rows, minlength=levels)
    return np.asarray(np.cumsum(counts) - counts / 2, dtype=np.float64)


def _expit(x: float) -> float:
    """The inverse of the logit; with tanh, nothing overflows."""
    return 0.5 * (1.0 + math.tanh(0.5 * x))


def _covariance(components: Floats) -> Floats:
    if len(components) == 1:
        return np.eye(components.shape[1]) * _LARGEST_VARIANCE
    centred = components - components.mean(axis=0)
    return np.asarray(centred.T @ centred / (len(components) - 1), dtype=np.float64)
