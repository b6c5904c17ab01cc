"""Hours of a source and hours of a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.planning.operations import hour_base, window_hours

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = Interval(START, START + 24 * HOUR)


@pytest.mark.parametrize(
    ("begins", "base"),
    [(0, 0), (59, 0), (360, 6), (390, 6)],
)
def test_a_source_that_begins_inside_the_window(begins: int, base: int) -> None:
    assert hour_base(DAY, Interval(START + timedelta(minutes=begins), DAY.end)) == base


@pytest.mark.parametrize("base", [0, 6])
def test_hours_are_moved_and_stay_small(base: int) -> None:
    hours = np.array([0, 1, 17], np.int32)
    found = window_hours(hours, base)
    assert (found.tolist(), found.dtype) == ([base, 1 + base, 17 + base], np.int32)
    assert hours.tolist() == [0, 1, 17]
