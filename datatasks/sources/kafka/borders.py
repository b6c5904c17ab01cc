"""Where the windows of a topic begin and end: offsets that are decided once, by the records' times.

A broker answers with the first record at or after an instant, in the order of offsets. That is
where a window begins, unless it is none for readers (the control record of a transaction, or a
record of one that was aborted), or may be odd: producers' wrong clocks stamped it, and those
shortly before it, hours ahead. Records around those are looked at then.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Border, Borders
from forebay.datatasks.sources.common.stream_borders import StreamBorders
from forebay.datatasks.sources.kafka.client import Cluster, OffsetAt, Topic
from forebay.datatasks.sources.kafka.read import Access, Reader, Stretch
from forebay.datatasks.sources.kafka.times import RecordTimes
from forebay.datatasks.sources.kafka.topic_version import TopicVersion
from forebay.system.instants import to_us

_STEPS_MAX = 32  # look-ups back from a record: a day in steps of an hour
_LOOK_BYTES = 256 << 10  # most looks are at one batch


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
            now: the planner's clock, of which it may be as far ahead.
        """
        names = [str(partition) for partition in topic.partitions]
        super().__init__(borders, topic.topic_id, names, spans, f"topic {topic.name}")
        self.topic = topic
        # After what is decided, which is before these; what arrives later is in a later window.
        self.ends = cluster.stable_ends(topic)
        self.firsts = cluster.first_offsets(topic)
        self._at = {instant: cluster.offsets_at(topic, _ms(instant)) for instant in self.instants}
        self.calls = 2 + len(self.instants)
        self._jump_ms = jump // timedelta(milliseconds=1)
        self._led_from = self._ways_back(cluster)
        with closing(Reader(access, _LOOK_BYTES)) as reader:
            for partition, first in self.firsts.items():
                whole = Stretch(topic.name, partition, first, self.ends[partition].offset)
                times = RecordTimes(reader, whole, self._jump_ms, _ms(now))
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

    def _ways_back(self, cluster: Cluster) -> dict[Border, int]:
        """Answers of the broker to which times lead without a jump, from the border before each.

        The value is the first offset on the way there. No run of odd records can be on it, however
        many there are and however far ahead.
        """
        found: dict[Border, int] = {}
        for instant, answers in self._at.items():
            at: dict[int, OffsetAt] = {}
            until_ms: dict[int, int] = {}
            for partition, answer in answers.items():
                border = Border(str(partition), instant)
                before = self.border_before(border)
                if answer is not None and before is not None and border not in self.known:
                    at[partition] = answer
                    until_ms[partition] = _ms(before) + self._jump_ms
            arrived = self._arrived(cluster, at, until_ms)
            found |= {Border(str(each), instant): offset for each, offset in arrived.items()}
        return found

    def _arrived(
        self, cluster: Cluster, at: dict[int, OffsetAt], until_ms: dict[int, int]
    ) -> dict[int, int]:
        """Where each of these gets to a time by steps of a jump; nothing where one finds nobody."""
        arrived: dict[int, int] = {}
        for _ in range(_STEPS_MAX):
            arrived |= {
                p: each.offset for p, each in at.items() if each.timestamp_ms <= until_ms[p]
            }
            asked = {p: at[p].timestamp_ms - self._jump_ms for p in at if p not in arrived}
            if not asked:
                break
            self.calls += 1
            before = cluster.offsets_at(self.topic, asked)
            at = {
                partition: earlier
                for partition, earlier in before.items()
                if earlier is not None and earlier.offset < at[partition].offset
            }
        return arrived

    def _reached(self, times: RecordTimes, stretch: Stretch, instant: datetime, low: int) -> int:
        """The offset from which on the partition has reached an instant, `low` at the least.

        That is the broker's answer, if it is a record, and times lead to it from the border before.
        """
        found = self._at[instant][stretch.partition]
        if found is None or found.offset >= stretch.end:
            return stretch.end
        begin = self._led_from.get(Border(str(stretch.partition), instant), -1)
        if begin >= low and times.has_record(found.offset):
            return found.offset
        return times.first_since(_ms(instant), max(found.offset, low))


def _ms(instant: datetime) -> int:
    """The first whole one that is not before it; brokers know none before 1970."""
    return max(0, -(-to_us(instant) // 1000))
