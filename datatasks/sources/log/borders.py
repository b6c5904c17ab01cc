"""Where the windows of a log's partitions begin and end: decided once, by commit times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders
from forebay.datatasks.sources.common.bundles import Ints
from forebay.datatasks.sources.common.deleted import Kept, refuse_deleted
from forebay.system.instants import from_us, to_us

# A log folder has no id that would change when it is made anew.
_NO_TOPIC = ""
# Longer runs of segments ahead of their time are no mistake of a clock: the stream has moved on.
ODD_RUN_MAX = 100


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
        jump: timedelta,
        now: datetime,
    ) -> None:
        """Look at commit times and decide what is not decided yet.

        Args:
            partitions: with at least one segment each.
            spans: of the windows that are planned.
            borders: what is decided already, and where the rest is.
            jump: how far ahead of its neighbours a segment's time may be.
            now: the planner's clock, which says the same of a partition's last segments.
        """
        self._partitions = partitions
        instants = sorted({each for span in spans for each in (span.start, span.end)})
        wanted = [Border(each.name, at) for each in partitions for at in instants]
        near = borders.near(_NO_TOPIC, wanted)
        self._known = {border for border in wanted if border in near}
        proposed = {
            border: offset
            for each in partitions
            for border, offset in self._proposed(each, instants, near, jump, now).items()
            if border not in near
        }
        self._offsets = near | borders.decide(_NO_TOPIC, proposed)

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
                is_decided=Border(each.name, span.start) in self._known,
                newest=f"{from_us(int(each.commit_us[0]))}",
            )
            refuse_deleted(kept, span, is_whole=starts is not None and span.start <= starts)

    def _proposed(
        self,
        partition: Partition,
        instants: Sequence[datetime],
        near: Mapping[Border, int],
        jump: timedelta,
        now: datetime,
    ) -> dict[Border, int]:
        known = {border.instant for border in self._known}
        jump_us = jump // timedelta(microseconds=1)
        odd = odd_times(partition.commit_us, jump_us, to_us(now))
        reached = np.maximum.accumulate(np.where(odd, np.int64(-(2**62)), partition.commit_us))
        found = np.searchsorted(reached, [to_us(instant) for instant in instants])
        offsets = np.append(partition.base, partition.end)[found]
        own = [border.instant for border in near if border.partition == partition.name]
        return {
            # A partition that was not there yet when the border was decided: nothing of it is lost.
            Border(partition.name, instant): int(partition.base[0])
            if instant in known and not any(at <= instant for at in own)
            else int(offset)
            for instant, offset in zip(instants, offsets, strict=True)
        }


def odd_times(times: Ints, jump: int, now: int) -> npt.NDArray[np.bool_]:
    """Which times are far ahead of both their neighbours: runs of at most `ODD_RUN_MAX`.

    At the end, the clock is the neighbour.

    Args:
        times: in the order of offsets.
        jump: how far ahead is too far.
        now: the clock, in the same unit.
    """
    odd = np.zeros(len(times), np.bool_)
    for last in np.flatnonzero(times[:-1] - times[1:] > jump):
        after = times[last + 1]
        first = last
        while first > 0 and times[first - 1] > after + jump and last - first < ODD_RUN_MAX:
            first -= 1
        if last - first < ODD_RUN_MAX:
            odd[first : last + 1] = True
    normal = np.flatnonzero(times <= now + jump)
    odd[(normal[-1] + 1 if len(normal) else 0) :] = True
    return odd
