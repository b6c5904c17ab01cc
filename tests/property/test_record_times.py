"""Where a stream reaches an instant, found by looks at a few records, as all of them say it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.streams.odd_times import odd_times, settled_times
from forebay.datatasks.sources.kafka.borders import RecordTimes
from forebay.datatasks.sources.kafka.read import Reader, Stretch
from forebay.datatasks.sources.kafka.wire.messages import Messages

Parts = list[tuple[int, int]]
JUMP, NOW, AHEAD = 60, 10_000, 20_000
BATCH = 50
# Records in time order, and how many that are ahead of the clock precede each part of them.
PARTS = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2, 99, 101, 300, 1500]), st.integers(1, 700)),
    min_size=1,
    max_size=4,
)


class _Reader:
    """Reads from memory, a batch at a time."""

    def __init__(self, offsets: list[int], times: list[int]) -> None:
        self._records = list(zip(offsets, times, strict=True))

    def messages(self, stretch: Stretch) -> Iterator[Messages]:
        found = [each for each in self._records if stretch.first <= each[0] < stretch.end]
        for at in range(0, len(found), BATCH):
            offsets, times = zip(*found[at : at + BATCH], strict=True)
            yield Messages([*offsets], [*times], [], [], 0)


@given(PARTS, st.integers(0, 3), st.integers(0, 200), st.lists(st.integers(0, 40)), st.data())
def test_what_is_ahead_of_the_clock_is_passed_over(
    parts: Parts, step: int, trailing: int, holes: list[int], data: st.DataObject
) -> None:
    times: list[int] = []
    past = 0
    for ahead, count in parts:
        times += [AHEAD] * ahead
        for _ in range(count):
            past += step
            times.append(past)
    times += [AHEAD] * trailing
    # Some offsets are no records for readers.
    offsets = np.arange(len(times)) + np.searchsorted(sorted(holes), np.arange(len(times)), "right")
    instant = data.draw(st.integers(0, past + 2))

    known, end = np.array(times, np.int64), int(offsets[-1]) + 1
    settled = settled_times(known, odd_times(known, JUMP, NOW))
    wanted = next((int(each) for each in offsets[settled >= instant]), end)

    reader = cast("Any", _Reader(offsets.tolist(), times))
    found = RecordTimes(cast("Reader", reader), Stretch("t", 0, 0, end), JUMP, NOW)
    asked = next((int(each) for each in offsets[known >= instant]), end)  # the broker's answer
    assert found.first_since(instant, asked) == wanted
