"""Which times of a stream are far ahead of both their neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from forebay.datatasks.sources.common.streams.odd_times import odd_times, settled_times


@pytest.mark.parametrize(
    ("times", "odd"),
    [
        *(([], []), ([1, 2, 3], []), ([1, 50, 2, 3], [1]), ([1, 2, 60, 2, 3], [2])),
        *(([1, 50, 60, 2, 3], [1, 2]), ([1, 50, 2], [1]), ([1, 50, 60, 2], []), ([50, 1, 2], [0])),
        # The last one is late: those before it are not odd.
        *(([1, *[50] * 20, 2], []), ([50, 51, 52, 1], []), ([50, 1], []), ([50, 51, 1, 2], [])),
        ([50, 51, 1, 2, 3], [0, 1]),
        # One that is late makes nothing odd that came before it.
        *(([1, 30, 31, 2, 32], []), ([10, 15, 20, 25, 30, 1, 33], [])),
        *(([1, *range(30, 60, 2), 5, 61], []), ([1, 5, 30, 3, 31], [2])),
        *(([1, *[60] * 101, 20, 61], []), ([1, *[50] * 100, *[2] * 100], [*range(1, 101)])),
        *(([1, *[50] * 100, *[2] * 99], []), ([1, *[50] * 101, *[2] * 101], []), ([1, 2, 90], [])),
        *(([1, 2, 120], [2]), ([120, 121], [0, 1])),
        # Ahead of the clock, nothing has to follow, and there may be any number.
        *(([1, 120, 121, 2], [1, 2]), ([1, *[150] * 101, 2], [*range(1, 102)])),
        *(([1, 50, 120, 2], [1, 2]), ([1, 120, 50, 120, 2, 120], [1, 2, 3, 5])),
        *(([1, 110, 2, 3], [1]), ([1, 2, 110], [])),
    ],
)
def test_which_times_are_odd(times: list[int], odd: list[int]) -> None:
    assert np.flatnonzero(odd_times(np.array(times, np.int64), 10, 100)).tolist() == odd


def test_an_odd_run_goes_with_what_follows_it() -> None:
    times = np.array([1, 60, 61, 2, 3, 150], np.int64)
    found = settled_times(times, odd_times(times, 10, 100))
    assert found[:5].tolist() == [1, 2, 2, 2, 3]
    assert found[5] < 0, "nothing follows it"
    nothing = np.zeros(0, np.int64)
    assert settled_times(nothing, odd_times(nothing, 10, 100)).tolist() == []
