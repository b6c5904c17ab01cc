"""Log loss and normalised entropy with intervals, paired on the same rows and pooled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.probabilities import Labels, Scores, row_losses
from forebay.mixture.metrics.seeds import Columns, Floats, difference_of, mean_of


@dataclass(frozen=True)
class LossEstimate:
    """Mean losses in nats of P score vectors on the same rows, and their covariance.

    rows: the weight when windows are pooled: how many there are, or less for an old window.
    entropy: mean loss of always answering the base rate of the window; normalised entropy is a loss
    divided by it. It is treated as known: in a difference of two, it is the same for both.
    """

    values: Floats
    covariance: Floats
    rows: float
    entropy: float

    def interval(self, columns: Columns) -> Estimate:
        """A variant's loss; the mean over its columns if they are several seeds."""
        return mean_of(self.values, self.covariance, columns).estimate()

    def difference(self, first: Columns, second: Columns) -> Estimate:
        return difference_of(self.values, self.covariance, first, second).estimate()

    def normalised(self) -> LossEstimate:
        """The same in units of the entropy."""
        share = 1.0 / self.entropy
        return LossEstimate(self.values * share, self.covariance * share**2, self.rows, 1.0)


def estimate_losses(labels: Labels, scores: Scores) -> LossEstimate | None:
    """Losses of the columns of `scores` (N x P) against `labels`; None with one class only."""
    truth = np.asarray(labels, dtype=np.float64) > 0.5
    positives = int(truth.sum())
    if positives in {0, len(truth)}:
        return None
    losses = np.stack([row_losses(truth, column) for column in np.asarray(scores).T], axis=1)
    centred = losses - losses.mean(axis=0)
    covariance = centred.T @ centred / (len(truth) - 1) / len(truth)
    entropy = entropy_of(positives, len(truth))
    return LossEstimate(losses.mean(axis=0), covariance, len(truth), entropy)


def entropy_of(positives: int, rows: int) -> float:
    """Mean loss, in nats, of always answering the base rate of rows of both classes."""
    rate = positives / rows
    return -(rate * math.log(rate) + (1.0 - rate) * math.log1p(-rate))


def pool_losses(estimates: Iterable[LossEstimate | None]) -> LossEstimate | None:
    """Mean over the rows of windows that have both classes; None if none has."""
    present = [estimate for estimate in estimates if estimate is not None]
    if not present:
        return None
    rows = sum(estimate.rows for estimate in present)
    weighted = [(estimate.rows / rows, estimate) for estimate in present]
    return LossEstimate(
        values=np.sum([share * one.values for share, one in weighted], axis=0),
        covariance=np.sum([share**2 * one.covariance for share, one in weighted], axis=0),
        rows=rows,
        entropy=sum(share * one.entropy for share, one in weighted),
    )
