"""Hours of a source and hours of a window."""

from __future__ import annotations

import numpy as np
import pytest

from forebay.datatasks.planning.operations import window_hours


@pytest.mark.parametrize("base", [0, 6])
def test_hours_are_moved_and_stay_small(base: int) -> None:
    hours = np.array([0, 1, 17], np.int32)
    found = window_hours(hours, base)
    assert (found.tolist(), found.dtype) == ([base, 1 + base, 17 + base], np.int32)
    assert hours.tolist() == [0, 1, 17]
