"""Seconds between two times, whatever the data claims."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forebay.mixture.features.values import INT_NULL, seconds_between

NOW, LARGEST = 1_772_323_200_000_000, 2**63 - 1
CENTURIES = 9.2e12  # seconds that microseconds of 63 bits hold


@pytest.mark.parametrize(
    ("first", "last", "seconds"),
    [
        (NOW, NOW + 1, 1e-6),
        (NOW, NOW + 3_600_000_000, 3600.0),
        (NOW + 1, NOW, 0.0),
        (-LARGEST, NOW, CENTURIES),
        (LARGEST, -LARGEST, 0.0),
        (-LARGEST, LARGEST, 2 * CENTURIES),
        (INT_NULL, NOW, math.nan),
        (NOW, INT_NULL, math.nan),
    ],
)
def test_seconds_are_never_of_another_sign(first: int, last: int, seconds: float) -> None:
    (found,) = seconds_between(np.array([first]), np.array([last])).tolist()
    assert found == pytest.approx(seconds, rel=0.01, nan_ok=True)
