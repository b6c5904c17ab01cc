"""Where the windows of a topic begin and end: offsets that are decided once, by the records' times.

A broker answers with the first record at or after an instant, in the order of offsets. That is
where a window begins, unless it is none for readers (the control record of a transaction, or a
record of one that was aborted), or may be odd: producers' wrong clocks stamped it, and those
shortly before it, hours ahead. Records around those are looked at then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.borders import Border, Borders
from forebay.datatasks.sources.common.streams.odd_times import (
    ODD_RUN_MAX,
    Ticks,
    odd_times,
    settled_times,
)
from forebay.datatasks.sources.common.streams.stream_borders import StreamBorders
from forebay.datatasks.sources.common.values.far_times import time_text
from forebay.datatasks.sources.common.values.times import hours_within
from forebay.datatasks.sources.kafka.client import Cluster, OffsetAt, Topic
from forebay.datatasks.sources.kafka.read import Access, Reader, Stretch
from forebay.datatasks.sources.kafka.topic_version import TopicVersion
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.system.instants import to_us

# As many records say where the stream is: an odd run, and what follows it, are fewer.
_LOOKED_AT = 2 * ODD_RUN_MAX + 1
_STEPS_MAX = 32  # look-ups back from a record: a day in steps of an hour
_LOOK_BYTES = 256 << 10  # most looks are at one batch


@dataclass(frozen=True)
class _Block:
    """Consecutive records, without those that are ahead of the clock.

    begins: the first record since the one before, which is ahead of the clock if it is another one.
    times: in milliseconds. is_last: whether they end the partition.
    """

    offsets: Ticks
    begins: Ticks
    times: Ticks
    is_last: bool


class RecordTimes:
    """Times of one partition's records up to the last stable offset, read where they are asked for.

    Control records, and records that were aborted or compacted away, have none.
    """

    def __init__(self, reader: Reader, stretch: Stretch, jump_ms: int, now_ms: int) -> None:
        self.calls = 0
        self._reader = reader
        self._stretch = stretch
        self._jump_ms = jump_ms
        self._now_ms = now_ms
        self._latest_ms = now_ms + jump_ms
        self._blocks: dict[int, _Block] = {}

    def has_record(self, offset: int) -> bool:
        """Whether a record is there for readers: none that was aborted, and no control record."""
        self.calls += 1
        only = self._stretch.between(offset, offset + 1)
        return any(messages.offsets for messages in self._reader.messages(only))

    def first_since(self, instant_ms: int, first: int) -> int:
        """The first record, from `first` on, that is not older than an instant, nor odd.

        The partition's end where there is none. Looked for around `first`; then by bisection, as
        half of some records in a row are older or none is; then one after the other.
        """
        found = self._reached(first, instant_ms)
        if found is not None:
            return found
        low, high = first, self._stretch.end
        while low < high:
            middle = (low + high) // 2
            if self._is_since(middle, instant_ms):
                high = middle
            else:
                low = middle + 1
        at = max(first, low - _LOOKED_AT)
        while at < self._stretch.end:
            found = self._reached(at, instant_ms)
            if found is not None:
                return found
            at = int(self._around(at).offsets[-_LOOKED_AT])
        return self._stretch.end

    def _reached(self, first: int, instant_ms: int) -> int | None:
        """The first such record of a few, with those behind them to judge by; None for none."""
        block = self._around(first)
        odd = odd_times(block.times, self._jump_ms, self._now_ms)
        reached = settled_times(block.times, odd) >= instant_ms
        found = np.flatnonzero(reached & (block.offsets >= first))
        if len(found) and (block.is_last or found[0] < len(block.times) - _LOOKED_AT):
            return max(first, int(block.begins[found[0]]))
        return self._stretch.end if block.is_last else None

    def _is_since(self, offset: int, instant_ms: int) -> bool:
        times = self._block(offset).times[:_LOOKED_AT]
        return len(times) == 0 or float(np.median(times)) >= instant_ms

    def _around(self, offset: int) -> _Block:
        """A block with what precedes an offset: a run that begins there is odd beside that."""
        return self._block(max(self._stretch.first, offset - ODD_RUN_MAX))

    def _block(self, offset: int) -> _Block:
        """Twice as many records as are looked at, from an offset on."""
        if offset not in self._blocks:
            self._blocks[offset] = self._read(offset)
        return self._blocks[offset]

    def _read(self, offset: int) -> _Block:
        self.calls += 1
        offsets, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        found = 0
        for messages in self._reader.messages(self._stretch.between(offset, self._stretch.end)):
            offsets.append(np.array(messages.offsets, np.int64))
            times.append(np.array(messages.timestamps, np.int64))
            found += int(np.count_nonzero(times[-1] <= self._latest_ms))
            if found > 2 * _LOOKED_AT:
                break
        every, stamps = np.concatenate(offsets), np.concatenate(times)
        past = np.flatnonzero(stamps <= self._latest_ms)
        kept = past[: 2 * _LOOKED_AT]
        begins = np.concatenate([[0], kept[:-1] + 1])[: len(kept)]
        return _Block(every[kept], every[begins], stamps[kept], is_last=len(kept) == len(past))


class TopicBorders(StreamBorders):
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
        """jump: how far ahead of its neighbours, and of `now`, a record's time may be."""
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

    def _stretch(self, partition: int, span: Interval) -> Stretch:
        return Stretch(self.topic.name, partition, *self.offsets(str(partition), span))

    def require_all_kept(
        self, spans: Sequence[Interval], starts: datetime | None, kept_since: datetime | None
    ) -> None:
        """See `require_kept`. Two things say that nothing of a span was deleted.

        A declared `starts` at its start, and a time limit that spares all since `kept_since`.
        """

        def is_whole(span: Interval) -> bool:
            return (starts is not None and span.start <= starts) or (
                kept_since is not None and span.start >= kept_since
            )

        def oldest(partition: str, span: Interval) -> str:
            stored = self._at[span.start][int(partition)]
            return time_text(stored.timestamp_ms * 1000) if stored else ""

        firsts = {str(partition): first for partition, first in self.firsts.items()}
        self.require_kept(firsts, spans, is_whole=is_whole, oldest=oldest)

    def tasks(self, spans: Sequence[Interval]) -> pa.Table:
        """One for each partition and span. Only reading can tell how many rows they hold."""
        found: list[tuple[int, int, Stretch]] = []
        for number, span in enumerate(spans):
            start, end = to_us(span.start), to_us(span.end)
            for partition in self.topic.partitions:
                stretch = self._stretch(partition, span)
                first = self._at[span.start][partition]
                if stretch.first < stretch.end:
                    is_first = first is not None and first.offset == stretch.first
                    stamp = min(first.timestamp_ms * 1000, end) if first and is_first else start
                    hour = int(hours_within(np.array([stamp]), start, end)[0])
                    found.append((number, hour, stretch))
        found.sort(key=lambda task: (task[0], task[1], task[2].path))
        return pa.Table.from_pylist([self._row(*task) for task in found], schema=TASK_SCHEMA)

    def _row(self, span: int, hour: int, stretch: Stretch) -> dict[str, object]:
        leader_epoch = self.ends[stretch.partition].leader_epoch
        row_range = {
            "path": stretch.path,
            "first": stretch.first,
            "end": stretch.end,
            "rows": None,
            "size_bytes": 0,
            "version": TopicVersion(self.topic.topic_id, leader_epoch).text,
        }
        return {
            "span": span,
            "hour": hour,
            "partition": str(stretch.partition),
            "ranges": [row_range],
            "rows": None,
            "size_bytes": 0,
            "cut": False,
        }

    def fingerprint(self, span: Interval) -> str:
        """Changes when the topic was recreated or the span holds other offsets."""
        held = [
            (partition, stretch.first, stretch.end)
            for partition in self.topic.partitions
            if (stretch := self._stretch(partition, span)).first < stretch.end
        ]
        text = json.dumps([self.topic.topic_id, self.topic.name, held])
        return hashlib.sha256(text.encode()).hexdigest()

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
