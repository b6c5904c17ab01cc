"""Streams that read one source with different offsets: each reads each record once.

Whoever plans first, whatever comes late, and whenever partitions appear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.borders import Border, Borders, Offsets, in_order
from forebay.datatasks.sources.common.streams.stream_borders import StreamBorders

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = 2
OFFSETS = {"now": 0, "half": 1, "day": 4}
FIRST = max(OFFSETS.values())  # no record is before the start of any stream
LAST = 24
PARTITIONS = "ab"

PLANS = st.tuples(st.sampled_from(sorted(OFFSETS)), st.integers(1, 3))
RECORDS = st.tuples(st.sampled_from(PARTITIONS), st.integers(FIRST, LAST))
STEPS = st.lists(st.one_of(PLANS, RECORDS), max_size=30)


class _Kept(Borders):
    """Borders as the database keeps them: of what is near, no more is told than it tells."""

    def __init__(self) -> None:
        self.decided: dict[Border, int] = {}

    def near(self, topic: str, borders: Iterable[Border]) -> dict[Border, int]:
        found: dict[Border, int] = {}
        wanted = sorted(borders)
        for name in {border.partition for border in wanted}:
            instants = [border.instant for border in wanted if border.partition == name]
            mine = [border for border in sorted(self.decided) if border.partition == name]
            before = [border for border in mine if border.instant < instants[0]][-1:]
            after = [border for border in mine if border.instant > instants[-1]][:1]
            between = [each for each in mine if instants[0] <= each.instant <= instants[-1]]
            found |= {border: self.decided[border] for border in (*before, *between, *after)}
        return found

    def partitions(self, topic: str) -> dict[str, datetime]:
        return {border.partition: border.instant for border in sorted(self.decided)}

    def latest_other(self, topic: str) -> tuple[str, datetime] | None:
        return None

    def decide(self, topic: str, proposed: Offsets) -> dict[Border, int]:
        near = self.near(topic, proposed)
        new = {border: offset for border, offset in proposed.items() if border not in near}
        found = in_order(near, new)
        self.decided |= found
        return {border: self.decided[border] for border in proposed}


class _World:
    def __init__(self) -> None:
        self.records: dict[str, list[datetime]] = {PARTITIONS[0]: []}
        self.read = {stream: Counter[tuple[str, int]]() for stream in OFFSETS}
        self.planned = dict.fromkeys(OFFSETS, 0)
        self._borders = _Kept()

    def plan(self, stream: str, windows: int) -> None:
        """The next windows of a stream, in one scan."""
        first = FIRST + WINDOW * self.planned[stream] - OFFSETS[stream]
        self.planned[stream] += windows
        spans = [
            Interval(START + (first + WINDOW * n) * HOUR, START + (first + WINDOW * (n + 1)) * HOUR)
            for n in range(windows)
        ]
        found = StreamBorders(self._borders, "topic", list(self.records), spans, "log")
        for name, times in self.records.items():

            def reached(instant: datetime, low: int, times: list[datetime] = times) -> int:
                later = (n for n, time in enumerate(times) if n >= low and time >= instant)
                return next(later, len(times))

            found.propose(name, len(times), reached)
        found.decide()
        for name in self.records:
            for span in spans:
                self.read[stream].update((name, n) for n in range(*found.offsets(name, span)))


@pytest.mark.guarantee(
    "a partition is added between the plans of such streams, with late records",
    "nothing; each row is trained on once for each stream",
)
@given(STEPS)
def test_each_stream_reads_each_record_once(steps: list[tuple[str, int]]) -> None:
    world = _World()
    for what, number in steps:
        if what in OFFSETS:
            world.plan(what, number)
        else:
            world.records.setdefault(what, []).append(START + number * HOUR)
    # What came after its windows were planned is in the ones after them.
    windows = LAST + max(world.planned.values())
    for stream, planned in world.planned.items():
        world.plan(stream, windows - planned)
    every = {(name, n): 1 for name, times in world.records.items() for n in range(len(times))}
    for stream, read in world.read.items():
        assert read == every, stream
