"""Means over the seeds of one variant: the interval covers rows and training noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forebay.mixture.metrics.estimate import NORMAL_QUANTILE, SEEDS_MIN, Estimate, student_quantile

Floats = npt.NDArray[np.float64]
# One column, or those of all seeds of one variant, in the same order for every variant.
Columns = int | Sequence[int]


@dataclass(frozen=True)
class SeedMean:
    """A mean over S seeds. reach: half the width of its 95% interval."""

    value: float
    reach: float
    seeds: int

    def estimate(self) -> Estimate:
        return Estimate(self.value, self.value - self.reach, self.value + self.reach, self.seeds)


def mean_over_seeds(values: Floats, covariance: Floats) -> SeedMean:
    """Mean of one figure over seeds, all of them measured on the same rows.

    Seeds are the readers and rows are the cases of Obuchowski and Rockette (1995): with s² the
    variance of the S figures and c the mean covariance of two different ones,

        variance = s²/S + max(c, 0),    degrees of freedom = variance² / ((s²/S)² / (S - 1))

    and the interval uses Student's t (Hillis 2007, Statistics in Medicine 26, 596-619). Unlike
    there, the variance is never below that of the mean over rows alone: a few seeds may happen to
    be close together. Below `SEEDS_MIN` seeds it is that one, with the normal quantile.

    Args:
        values: float64[S], the figure of each seed.
        covariance: float64[S, S], of these figures over other samples of the rows (DeLong's).
    """
    seeds = len(values)
    mean, rows = float(values.mean()), max(0.0, float(covariance.mean()))
    if seeds < SEEDS_MIN:
        return SeedMean(mean, NORMAL_QUANTILE * math.sqrt(rows), seeds)
    training = float(values.var(ddof=1)) / seeds
    pairs = seeds * (seeds - 1)
    shared = (float(covariance.sum()) - float(np.trace(covariance))) / pairs
    variance = max(training + max(shared, 0.0), rows)
    if training == 0.0:
        return SeedMean(mean, NORMAL_QUANTILE * math.sqrt(variance), seeds)
    degrees = variance**2 / (training**2 / (seeds - 1))
    return SeedMean(mean, student_quantile(degrees) * math.sqrt(variance), seeds)


def mean_of(values: Floats, covariance: Floats, columns: Columns) -> SeedMean:
    """Like `mean_over_seeds`, for some columns of float64[P] and float64[P, P]."""
    chosen = _chosen(columns)
    return mean_over_seeds(values[chosen], covariance[np.ix_(chosen, chosen)])


def difference_of(values: Floats, covariance: Floats, first: Columns, second: Columns) -> SeedMean:
    """Mean over seeds of `first` minus `second`, each pair trained from one seed.

    Raises:
        ValueError: when one has more seeds than the other.
    """
    a, b = _chosen(first), _chosen(second)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} seeds against {len(b)}: both must have the same seeds")
    c = covariance
    mixed = c[np.ix_(a, b)]
    paired = c[np.ix_(a, a)] + c[np.ix_(b, b)] - mixed - mixed.T
    return mean_over_seeds(values[a] - values[b], paired)


def _chosen(columns: Columns) -> list[int]:
    return [columns] if isinstance(columns, int) else list(columns)
