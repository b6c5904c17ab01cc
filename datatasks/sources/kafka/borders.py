"""Where the windows of a topic begin and end: offsets that are decided once, by the records' times.

A broker answers with the first record at or after an instant, in the order of offsets. That is
where a window begins, unless the record is odd: the control record of a transaction that wrote old
data, or one that a producer's wrong clock stamped hours ahead. Records around those are looked at
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders
from forebay.datatasks.sources.common.stream_borders import StreamBorders
from forebay.datatasks.sources.kafka.client import Cluster, OffsetAt, Topic
from forebay.datatasks.sources.kafka.read import Access, Stretch
from forebay.datatasks.sources.kafka.times import RecordTimes
from forebay.datatasks.sources.kafka.topic_version import TopicVersion
from forebay.system.instants import to_us


class TopicBorders(StreamBorders):
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
        """Ask the cluster.

        Args:
            cluster: where the topic is.
            access: how its records are read where times are odd.
            topic: as it is now.
            spans: of the windows that are planned.
            borders: what is decided already, and where the rest is.
            jump: how far ahead of its neighbours a record's time may be.
            now: the planner's clock, which says the same of a partition's last records.
        """
        names = [str(partition) for partition in topic.partitions]
        super().__init__(borders, topic.topic_id, names, spans, f"topic {topic.name}")
        self.topic = topic
        # After what is decided, which lies before these; what arrives later is in a later window.
        self.ends = cluster.stable_ends(topic)
        self.firsts = cluster.first_offsets(topic)
        self._at = {instant: cluster.offsets_at(topic, _ms(instant)) for instant in self.instants}
        self.calls = 2 + len(self.instants)
        self._jump_ms = jump // timedelta(milliseconds=1)
        self._before = self._shortly_before(cluster)
        for partition, first in self.firsts.items():
            whole = Stretch(topic.name, partition, first, self.ends[partition].offset)
            times = RecordTimes(access, whole, self._jump_ms, _ms(now))
            self.propose(str(partition), whole.end, partial(self._reached, times, whole))
            self.calls += times.calls

    def first(self, partition: int, span: Interval) -> OffsetAt | None:
        """The first record that is not older than the span, should there be one."""
        return self._at[span.start][partition]

    def stretch(self, partition: int, span: Interval) -> Stretch:
        """Offsets of the span."""
        return Stretch(self.topic.name, partition, *self.offsets(str(partition), span))

    def version(self, partition: int) -> TopicVersion:
        """Which topic and partition was asked."""
        return TopicVersion(self.topic.topic_id, self.ends[partition].leader_epoch)

    def _shortly_before(self, cluster: Cluster) -> dict[datetime, dict[int, OffsetAt | None]]:
        """For each answer of the broker the first record that is not far older than it."""
        found: dict[datetime, dict[int, OffsetAt | None]] = {}
        for instant, answers in self._at.items():
            asked = {
                partition: max(0, answer.timestamp_ms - self._jump_ms)
                for partition, answer in answers.items()
                if answer is not None and Border(str(partition), instant) not in self.known
            }
            if asked:
                found[instant] = cluster.offsets_at_each(self.topic, asked)
                self.calls += 1
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


def _ms(instant: datetime) -> int:
    """The first whole one that is not before it; brokers know none before 1970."""
    return max(0, -(-to_us(instant) // 1000))
