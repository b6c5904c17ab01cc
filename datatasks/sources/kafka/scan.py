"""Cuts a topic into tasks: one for each partition and span, by the timestamps of its records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.times import hours_within
from forebay.datatasks.sources.kafka.client import Cluster, OffsetAt, Topic
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.errors import DataError
from forebay.system.instants import from_us, to_us


class Borders:
    """Offsets of every border of the spans: one lookup for each instant, for all partitions."""

    def __init__(self, cluster: Cluster, topic: Topic, spans: Sequence[Interval]) -> None:
        """Ask the cluster, first for the ends: what arrives meanwhile belongs to a later plan."""
        self.topic = topic
        self.ends = cluster.end_offsets(topic)
        self.firsts = cluster.first_offsets(topic)
        instants = sorted({instant for span in spans for instant in (span.start, span.end)})
        self._at = {
            instant: cluster.offsets_at(topic, to_us(instant) // 1000) for instant in instants
        }
        self.calls = 2 + len(instants)

    def first(self, partition: int, span: Interval) -> OffsetAt | None:
        """The span's first record, should it have one."""
        return self._at[span.start][partition]

    def stretch(self, partition: int, span: Interval) -> Stretch:
        """Offsets of the span: up to the next span's first record, or the high watermark."""
        return Stretch(
            self.topic.name,
            partition,
            self._offset(partition, span.start),
            self._offset(partition, span.end),
        )

    def _offset(self, partition: int, instant: datetime) -> int:
        found = self._at[instant][partition]
        return self.ends[partition] if found is None else min(found.offset, self.ends[partition])


def refuse_deleted(
    borders: Borders, span: Interval, starts: datetime | None, kept_since: datetime | None
) -> None:
    """Raise when rows of the span may have been deleted by the topic's retention.

    The first stored record being the span's first one, records before it are gone, and nobody
    can tell any more whether some of them lay in the span. Two things say that none did: a
    declared `starts` at the span's start, and a time limit that spares everything since
    `kept_since`.

    Raises:
        DataError: which names what to declare.
    """
    if starts is not None and span.start <= starts:
        return
    if kept_since is not None and span.start >= kept_since:
        return
    for partition in borders.topic.partitions:
        gone = borders.firsts[partition]
        if gone == 0 or borders.stretch(partition, span).first > gone:
            continue
        stored = borders.first(partition, span)
        since = f" (the first one left is of {_instant(stored)})" if stored else ""
        raise DataError(
            f"topic {borders.topic.name}, partition {partition}: the records before offset {gone} "
            f"were deleted{since}, and rows of {span.start} to {span.end} may be among them: "
            "declare `starts` in the source, or run a later window"
        )


def _instant(stored: OffsetAt) -> datetime:
    return from_us(stored.timestamp_ms * 1000)


def task_table(borders: Borders, spans: Sequence[Interval], uncounted: set[int]) -> pa.Table:
    """The tasks of all spans. `uncounted` partitions have fewer rows than offsets, or others."""
    found: list[tuple[int, int, Stretch]] = []
    for number, span in enumerate(spans):
        start, end = to_us(span.start), to_us(span.end)
        for partition in borders.topic.partitions:
            stretch = borders.stretch(partition, span)
            first = borders.first(partition, span)
            if stretch.first < stretch.end and first is not None:
                stamp = np.array([first.timestamp_ms * 1000])
                found.append((number, int(hours_within(stamp, start, end)[0]), stretch))
    found.sort(key=lambda task: (task[0], task[1], task[2].path))
    return pa.Table.from_pylist([_row(*task, uncounted) for task in found], schema=TASK_SCHEMA)


def _row(span: int, hour: int, stretch: Stretch, uncounted: set[int]) -> dict[str, object]:
    rows = None if stretch.partition in uncounted else stretch.end - stretch.first
    row_range = {"path": stretch.path, "first": stretch.first, "end": stretch.end}
    return {
        "span": span,
        "hour": hour,
        "partition": str(stretch.partition),
        "ranges": [{**row_range, "rows": rows, "size_bytes": 0}],
        "rows": rows,
        "size_bytes": 0,
        "cut": False,
    }


def fingerprint(borders: Borders, span: Interval) -> str:
    """Changes when the topic was created anew or the span holds other offsets."""
    held = [
        (partition, stretch.first, stretch.end)
        for partition in borders.topic.partitions
        if (stretch := borders.stretch(partition, span)).first < stretch.end
    ]
    text = json.dumps([borders.topic.topic_id, borders.topic.name, held])
    return hashlib.sha256(text.encode()).hexdigest()
