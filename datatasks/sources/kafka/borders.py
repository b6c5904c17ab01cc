"""Where the windows of a topic begin and end: offsets that are decided once, by the records' times.

A broker answers with the first record at or after an instant, in the order of offsets. That is
where a window begins, unless the record is odd: the control record of a transaction that wrote old
data, or one that a producer's wrong clock stamped hours ahead. Records around those are looked at
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders, in_order, require_within
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
        """Ask the cluster. Nothing is decided yet: the spans may be refused by what is seen now.

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
        self._borders = borders
        self._instants = sorted({each for span in spans for each in (span.start, span.end)})
        wanted = [Border(str(each), at) for each in topic.partitions for at in self._instants]
        near = borders.near(topic.topic_id, wanted)
        # After what is decided, which lies before these; what arrives later is in a later window.
        self.ends = cluster.stable_offsets(topic)
        self.firsts = cluster.first_offsets(topic)
        self._at = {instant: cluster.offsets_at(topic, _ms(instant)) for instant in self._instants}
        self.calls = 2 + len(self._instants)
        self._known = {border for border in wanted if border in near}
        self._elsewhere = {border.instant for border in self._known}
        self._jump_ms = jump // timedelta(milliseconds=1)
        self._before = self._shortly_before(cluster)
        self._proposed: dict[Border, int] = {}
        self._decided = _by_partition(topic, near)
        for partition, decided in self._decided.items():
            stretch = Stretch(topic.name, partition, self.firsts[partition], self.ends[partition])
            require_within(decided, stretch.end, f"topic {topic.name}, partition {partition}")
            times = RecordTimes(access, stretch, self._jump_ms, _ms(now))
            self._proposed |= self._propose(times, stretch, decided)
            self.calls += times.calls
        self._offsets = near | in_order(near, self._proposed)

    def decide(self) -> None:
        """Let the borders hold from now on; what somebody decided meanwhile holds already."""
        decided = self._borders.decide(self.topic.topic_id, self._proposed)
        self._offsets = self._offsets | decided

    def first(self, partition: int, span: Interval) -> OffsetAt | None:
        """The first record that is not older than the span, should there be one."""
        return self._at[span.start][partition]

    def stretch(self, partition: int, span: Interval) -> Stretch:
        """Offsets of the span."""
        first, end = (
            self._offsets[Border(str(partition), instant)] for instant in (span.start, span.end)
        )
        return Stretch(self.topic.name, partition, first, end)

    def is_decided(self, partition: int, offset: int) -> bool:
        """Whether an earlier plan decided that a window begins there."""
        return offset in self._decided[partition].values()

    def _shortly_before(self, cluster: Cluster) -> dict[datetime, dict[int, OffsetAt | None]]:
        """For each answer of the broker the first record that is not far older than it."""
        found: dict[datetime, dict[int, OffsetAt | None]] = {}
        for instant, answers in self._at.items():
            asked = {
                partition: max(0, answer.timestamp_ms - self._jump_ms)
                for partition, answer in answers.items()
                if answer is not None and Border(str(partition), instant) not in self._known
            }
            if asked:
                found[instant] = cluster.offsets_at_each(self.topic, asked)
                self.calls += 1
        return found

    def _propose(
        self, times: RecordTimes, stretch: Stretch, decided: dict[Border, int]
    ) -> dict[Border, int]:
        """Borders of one partition that are not decided yet."""
        name = str(stretch.partition)
        found: dict[Border, int] = {}
        low = stretch.first
        for border in sorted({*decided, *(Border(name, at) for at in self._instants)}):
            if border in decided:
                low = max(low, decided[border])
            elif border.instant in self._elsewhere:  # it was not there yet: nothing of it is lost
                found[border] = low
            else:
                found[border] = low = self._reached(times, stretch, border.instant, low)
        return found

    def _reached(self, times: RecordTimes, stretch: Stretch, instant: datetime, low: int) -> int:
        """The offset from which on the partition has reached an instant, `low` at the least.

        That is the broker's answer, unless the record may be odd: an earlier border is behind it
        already, or nothing comes shortly before it.
        """
        found = self._at[instant][stretch.partition]
        if found is None or found.offset >= stretch.end:
            return stretch.end
        before = self._before[instant][stretch.partition]
        if found.offset >= low and before is not None and before.offset < found.offset:
            return found.offset
        return times.first_since(_ms(instant), max(found.offset, low))


def _by_partition(topic: Topic, near: dict[Border, int]) -> dict[int, dict[Border, int]]:
    found: dict[int, dict[Border, int]] = {partition: {} for partition in topic.partitions}
    for border, offset in near.items():
        found[int(border.partition)][border] = offset
    return found


def _ms(instant: datetime) -> int:
    """The first whole one that is not before it; brokers know none before 1970."""
    return max(0, -(-to_us(instant) // 1000))
