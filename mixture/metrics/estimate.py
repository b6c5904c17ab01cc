"""Estimate: a figure and its interval. Code that only reads figures needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Two seeds say almost nothing about how much seeds differ.
SEEDS_MIN = 3
# AUC: standard deviation of a difference between two variants over models' seeds, on one market:
# median of all pairs in four regimes, `learning.py --seeds 1 --model '{"seed": 11}'`. With three
# times the events it is .0005.
SEED_NOISE = 0.0038


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval.

    seeds: how many seeds were trained; the figure is their mean. From `SEEDS_MIN` seeds on, the
    interval covers the choice of seeds and of rows; below that, only of rows.
    """

    value: float
    low: float
    high: float
    seeds: int = 1

    @property
    def reach(self) -> float:
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def covers_seeds(self) -> bool:
        return self.seeds >= SEEDS_MIN

    def is_clear(self, noise: float = SEED_NOISE) -> bool:
        """Whether it is not 0: outside what rows explain, and what a choice of seeds does.

        noise: standard deviation over choices of one seed, for an interval that covers rows only.
        """
        by_seeds = 0.0 if self.covers_seeds else noise / math.sqrt(self.seeds)
        return self.excludes_zero and abs(self.value) > by_seeds

    @property
    def covers(self) -> str:
        """What the interval allows for, in words."""
        return f"rows and {self.seeds} seeds" if self.covers_seeds else "rows only"


# Of the standard normal distribution, at 0.975.
NORMAL_QUANTILE = 1.959963984540054
# For 1 to 9 degrees of freedom, rounded up; above that, the expansion below is accurate to 0.0005.
_FEW = (12.7063, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622)


def student_quantile(degrees: float) -> float:
    """The quantile for degrees of freedom from 1 on; below 10, they are rounded down.

    From 10 on, by the expansion in powers of 1/degrees (Abramowitz and Stegun 1964, 26.7.5).
    """
    if degrees < len(_FEW) + 1:
        return _FEW[math.floor(degrees) - 1]
    z, more = NORMAL_QUANTILE, 1.0 / degrees
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + more * (first + more * (second + more * third))


# Fewer windows say too little about how much windows differ.
SPREAD_WINDOWS_MIN = 3


def over_windows(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """The weighted mean of n windows' figures, and half the width of its 95% interval.

    Its variance is sum(w² (d - mean)²) n / (n - 1) with weights w that add up to 1, and Student's t
    has n - 1 degrees of freedom.
    """
    total, count = math.fsum(weights), len(values)
    shares = [each / total for each in weights]
    mean = math.fsum(share * one for share, one in zip(shares, values, strict=True))
    apart = ((share * (one - mean)) ** 2 for share, one in zip(shares, values, strict=True))
    variance = math.fsum(apart) * count / (count - 1)
    return mean, student_quantile(count - 1) * math.sqrt(variance)
