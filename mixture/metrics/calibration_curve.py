"""The calibration curve: expected and observed positives of rows with similar scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.figures import CurvePoint
from forebay.mixture.metrics.probabilities import Labels, Scores

# Edges of the bins in logits: from 0.2% to 99.8%, so that rare positives are resolved too.
_EDGES = np.linspace(-6.0, 6.0, 25)
BINS = len(_EDGES) + 1
_QUANTILE = 1.959963984540054


@dataclass(frozen=True)
class CalibrationCurve:
    """Counts of rows by bins of the score: int64[BINS] rows and positives, float64[BINS] expected.

    The bins are always the same, so the curves of several windows can be added.
    """

    rows: tuple[int, ...]
    positives: tuple[int, ...]
    expected: tuple[float, ...]

    @classmethod
    def of(cls, labels: Labels, probabilities: Scores) -> Self:
        """Count the rows of one column of scores. A label above 0.5 is a positive."""
        scores = np.clip(np.asarray(probabilities, np.float64), 1e-7, 1 - 1e-7)
        places = np.searchsorted(_EDGES, np.log(scores / (1 - scores)), side="right")
        positive = np.asarray(labels, np.float64) > 0.5
        return cls(
            rows=tuple(np.bincount(places, minlength=BINS).tolist()),
            positives=tuple(np.bincount(places[positive], minlength=BINS).tolist()),
            expected=tuple(np.bincount(places, weights=scores, minlength=BINS).tolist()),
        )

    def points(self, points_max: int = 10) -> list[CurvePoint]:
        """By ascending score, with the observed rate's 95% interval.

        Neighbouring bins are merged until each point has its share of the rows. The
        interval is Wilson's (1927), which does not leave [0, 1].
        """
        share = sum(self.rows) / points_max
        found: list[CurvePoint] = []
        rows, positives, expected = 0, 0, 0.0
        for index in range(BINS):
            rows += self.rows[index]
            positives += self.positives[index]
            expected += self.expected[index]
            if rows and (rows >= share or not any(self.rows[index + 1 :])):
                observed = wilson(positives, rows)
                found.append(CurvePoint(expected=expected / rows, observed=observed, rows=rows))
                rows, positives, expected = 0, 0, 0.0
        return found


def added(curves: Iterable[CalibrationCurve]) -> CalibrationCurve:
    each = [CalibrationCurve((0,) * BINS, (0,) * BINS, (0.0,) * BINS), *curves]
    return CalibrationCurve(
        rows=tuple(map(sum, zip(*(one.rows for one in each), strict=True))),
        positives=tuple(map(sum, zip(*(one.positives for one in each), strict=True))),
        expected=tuple(map(math.fsum, zip(*(one.expected for one in each), strict=True))),
    )


def wilson(positives: int, rows: int) -> Estimate:
    """A rate with Wilson's 95% interval. rows: at least 1."""
    rate, z2 = positives / rows, _QUANTILE**2
    centre = (rate + z2 / (2 * rows)) / (1 + z2 / rows)
    reach = math.sqrt(rate * (1 - rate) / rows + z2 / (4 * rows**2)) * _QUANTILE / (1 + z2 / rows)
    return Estimate(rate, max(0.0, centre - reach), min(1.0, centre + reach))
