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
from forebay.datatasks.sources.common.borders import Borders, Cut
from forebay.datatasks.sources.kafka.client import Cluster, OffsetAt, Topic
from forebay.datatasks.sources.kafka.read import Access, Stretch
from forebay.datatasks.sources.kafka.times import RecordTimes
from forebay.system.instants import to_us


class Cuts:
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
        instants = sorted({instant for span in spans for instant in (span.start, span.end)})
        self._at = {instant: cluster.offsets_at(topic, _ms(instant)) for instant in instants}
        self.calls = 2 + len(instants)
        self._times = {
            partition: RecordTimes(
                access, Stretch(topic.name, partition, first, self.ends[partition]), _ms(now + jump)
            )
            for partition, first in self.firsts.items()
        }
        self._jump_ms = jump // timedelta(milliseconds=1)
        wanted = [Cut(str(each), instant) for each in topic.partitions for instant in instants]
        self.known = borders.decided(topic.topic_id, wanted)
        old = {cut.instant for cut in self.known}
        proposed = {
            cut: self._proposed(int(cut.partition), cut.instant, is_new=cut.instant in old)
            for cut in wanted
            if cut not in self.known
        }
        self._offsets = self.known | borders.decide(topic.topic_id, proposed)
        self.calls += sum(each.calls for each in self._times.values())

    def first(self, partition: int, span: Interval) -> OffsetAt | None:
        """The first record that is not older than the span, should there be one."""
        return self._at[span.start][partition]

    def stretch(self, partition: int, span: Interval) -> Stretch:
        """Offsets of the span."""
        first, end = (
            self._offsets[Cut(str(partition), instant)] for instant in (span.start, span.end)
        )
        return Stretch(self.topic.name, partition, first, end)

    def is_known(self, partition: int, instant: datetime) -> bool:
        """Whether an earlier plan decided the border."""
        return Cut(str(partition), instant) in self.known

    def _proposed(self, partition: int, instant: datetime, *, is_new: bool) -> int:
        """is_new: the border of other partitions was decided when this one was not there."""
        end = self.ends[partition]
        if is_new:
            return self.firsts[partition]
        found = self._at[instant][partition]
        if found is None or found.offset >= end:
            return end
        if found.timestamp_ms <= _ms(instant) + self._jump_ms:
            return found.offset
        return self._times[partition].first_since(_ms(instant), found.offset)


def _ms(instant: datetime) -> int:
    return to_us(instant) // 1000
