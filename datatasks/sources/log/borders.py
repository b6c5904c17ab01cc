"""Where the windows of a log's partitions begin and end: decided once, by commit times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders, in_order, require_within
from forebay.datatasks.sources.common.bundles import Ints
from forebay.datatasks.sources.common.deleted import Kept, refuse_deleted
from forebay.datatasks.sources.common.odd_times import odd_times
from forebay.system.instants import from_us, to_us

_NO_PARTITION = ""


@dataclass(frozen=True)
class Partition:
    """Segments of one partition in their order: [base, base + rows) and when they were committed.

    at: the index of each among all segments.
    """

    name: str
    base: Ints
    rows: Ints
    commit_us: Ints
    at: Ints

    @property
    def end(self) -> int:
        """The offset that the next row will have."""
        return int(self.base[-1] + self.rows[-1])


class LogBorders:
    """Offsets of every border of the spans, for all partitions."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        spans: Sequence[Interval],
        borders: Borders,
        path: str,
        jump: timedelta,
        now: datetime,
    ) -> None:
        """Look at commit times. Nothing is decided yet: the spans may be refused by them.

        Args:
            partitions: with at least one segment each.
            spans: of the windows that are planned.
            borders: what is decided already, and where the rest is.
            path: of the log, as it is declared: another one has other offsets.
            jump: how far ahead of its neighbours a segment's time may be.
            now: the planner's clock, which says the same of a partition's last segments.
        """
        self._partitions, self._borders, self._path = partitions, borders, path
        self._instants = sorted({each for span in spans for each in (span.start, span.end)})
        self._jump_us, self._now_us = jump // timedelta(microseconds=1), to_us(now)
        # One of no partition for each instant: it says that others were not there.
        names = [_NO_PARTITION, *(each.name for each in partitions)]
        wanted = [Border(name, at) for name in names for at in self._instants]
        near = borders.near(path, wanted)
        self._known = {border for border in wanted if border in near}
        self._elsewhere = {border.instant for border in self._known}
        decided: dict[str, dict[Border, int]] = {name: {} for name in names}
        for border, offset in near.items():
            decided[border.partition][border] = offset
        self._proposed = {Border(_NO_PARTITION, at): 0 for at in self._instants}
        for each in partitions:
            require_within(decided[each.name], each.end, f"log {path}, partition {each.name}")
            self._proposed |= self._propose(each, decided[each.name])
        self._decided = {name: set(found.values()) for name, found in decided.items()}
        self._offsets = near | in_order(near, self._proposed)

    def decide(self) -> None:
        """Let the borders hold from now on; what somebody decided meanwhile holds already."""
        self._offsets = self._offsets | self._borders.decide(self._path, self._proposed)

    def stretch(self, partition: str, span: Interval) -> tuple[int, int]:
        """Offsets [first, end) of a span."""
        return self._offsets[Border(partition, span.start)], self._offsets[
            Border(partition, span.end)
        ]

    def require_kept(self, span: Interval, starts: datetime | None) -> None:
        """See `refuse_deleted`."""
        for each in self._partitions:
            first, end = self.stretch(each.name, span)
            kept = Kept(
                place=f"partition {each.name}",
                gone=int(each.base[0]),
                first=first,
                end=end,
                is_decided=first in self._decided[each.name],
                newest=f"{from_us(int(each.commit_us[0]))}",
            )
            refuse_deleted(kept, span, is_whole=starts is not None and span.start <= starts)

    def _propose(self, partition: Partition, decided: Mapping[Border, int]) -> dict[Border, int]:
        """Borders of one partition that are not decided yet."""
        odd = odd_times(partition.commit_us, self._jump_us, self._now_us)
        reached = np.maximum.accumulate(np.where(odd, np.int64(-(2**62)), partition.commit_us))
        at = np.searchsorted(reached, [to_us(instant) for instant in self._instants])
        by_time = dict(
            zip(self._instants, np.append(partition.base, partition.end)[at].tolist(), strict=True)
        )
        found: dict[Border, int] = {}
        low = int(partition.base[0])
        for border in sorted({*decided, *(Border(partition.name, at) for at in self._instants)}):
            if border in decided:
                low = max(low, decided[border])
            elif border.instant in self._elsewhere:  # it was not there yet: nothing of it is lost
                found[border] = low
            else:
                found[border] = low = max(low, by_time[border.instant])
        return found
