"""Where the windows of a topic begin and end: offsets that are decided once, by the records' times.

A broker answers with the first record at or after an instant, in the order of offsets. That is
where a window begins, unless the record is odd: the control record of a transaction that wrote old
data, or one that a producer's wrong clock stamped hours ahead. Records around those are looked at
then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders
from forebay.datatasks.sources.kafka.client import Cluster, OffsetAt, Topic
from forebay.datatasks.sources.kafka.read import Access, Stretch
from forebay.datatasks.sources.kafka.times import RecordTimes
from forebay.system.instants import to_us


class TopicBorders:
    """Offsets of every border of the spans, for all partitions of a topic."""

    def __init__(
        self,
        cluster: Cluster,
        access: Access,
        topic: Topic,
        spans: Sequence[Interval],
        borders: Borders,
        jump: timedelta,
        now: datetime,
    ) -> None:
        """Ask the cluster, first for the ends: what arrives meanwhile is in a later window.

        Args:
            cluster: where the topic is.
            access: how its records are read where times are odd.
            topic: as it is now.
            spans: of the windows that are planned.
            borders: what is decided already, and where the rest is.
            jump: how far ahead of its neighbours a record's time may be.
            now: the planner's clock, which says the same of a partition's last records.
        """
        self.topic = topic
        self.ends = cluster.stable_offsets(topic)
        self.firsts = cluster.first_offsets(topic)
        self._instants = sorted({each for span in spans for each in (span.start, span.end)})
        self._jump = jump
        asked = {*self._instants, *(instant - jump for instant in self._instants)}
        self._at = {instant: cluster.offsets_at(topic, _ms(instant)) for instant in sorted(asked)}
        self.calls = 2 + len(asked)
        wanted = [Border(str(each), at) for each in topic.partitions for at in self._instants]
        near = borders.near(topic.topic_id, wanted)
        self._known = {border for border in wanted if border in near}
        proposed: dict[Border, int] = {}
        for partition, first in self.firsts.items():
            stretch = Stretch(topic.name, partition, first, self.ends[partition])
            times = RecordTimes(access, stretch, _ms(now + jump))
            proposed |= self._proposed(times, stretch, near)
            self.calls += times.calls
        self._offsets = near | borders.decide(topic.topic_id, proposed)

    def first(self, partition: int, span: Interval) -> OffsetAt | None:
        """The first record that is not older than the span, should there be one."""
        return self._at[span.start][partition]

    def stretch(self, partition: int, span: Interval) -> Stretch:
        """Offsets of the span."""
        first, end = (
            self._offsets[Border(str(partition), instant)] for instant in (span.start, span.end)
        )
        return Stretch(self.topic.name, partition, first, end)

    def is_known(self, partition: int, instant: datetime) -> bool:
        """Whether an earlier plan decided the border."""
        return Border(str(partition), instant) in self._known

    def _proposed(
        self, times: RecordTimes, stretch: Stretch, near: Mapping[Border, int]
    ) -> dict[Border, int]:
        """Borders of one partition that are not decided yet."""
        name = str(stretch.partition)
        elsewhere = {border.instant for border in self._known}
        decided = sorted(
            (border.instant, at) for border, at in near.items() if border.partition == name
        )
        found: dict[Border, int] = {}
        low = stretch.first
        for instant in self._instants:
            low = max([low, *(offset for at, offset in decided if at <= instant)])
            border = Border(name, instant)
            if border in self._known:
                continue
            if instant in elsewhere:  # a partition that was not there yet: nothing of it is lost
                found[border] = low
            else:
                found[border] = low = self._reached(times, stretch, instant, low)
        return found

    def _reached(self, times: RecordTimes, stretch: Stretch, instant: datetime, low: int) -> int:
        """The offset from which on the partition has reached an instant, `low` at the least.

        That is the broker's answer, unless the record may be odd: an earlier border is behind it
        already, its time is far from the instant, or nothing comes shortly before it.
        """
        found = self._at[instant][stretch.partition]
        if found is None or found.offset >= stretch.end:
            return stretch.end
        before = self._at[instant - self._jump][stretch.partition]
        is_far = found.timestamp_ms > _ms(instant + self._jump)
        if found.offset >= low and not is_far and before != found:
            return found.offset
        return times.first_since(_ms(instant), max(found.offset, low))


def _ms(instant: datetime) -> int:
    return to_us(instant) // 1000
