"""Cuts a topic into tasks: one for each partition and span, by the timestamps of its records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.values.far_times import time_text
from forebay.datatasks.sources.common.values.times import hours_within
from forebay.datatasks.sources.kafka.borders import TopicBorders
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.sources.kafka.topic_version import TopicVersion
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.system.instants import to_us


def require_kept(
    borders: TopicBorders,
    spans: Sequence[Interval],
    starts: datetime | None,
    kept_since: datetime | None,
) -> None:
    """Raise when rows of a span were deleted by the topic's retention, or may have been.

    Two things say that none were: a declared `starts` at the span's start, and a time limit that
    spares everything since `kept_since`.

    Raises:
        RowsDeletedError: which names what to declare.
    """

    def is_whole(span: Interval) -> bool:
        return (starts is not None and span.start <= starts) or (
            kept_since is not None and span.start >= kept_since
        )

    def oldest(partition: str, span: Interval) -> str:
        stored = borders.first(int(partition), span)
        return time_text(stored.timestamp_ms * 1000) if stored else ""

    firsts = {str(partition): first for partition, first in borders.firsts.items()}
    borders.require_kept(firsts, spans, is_whole=is_whole, oldest=oldest)


def task_table(borders: TopicBorders, spans: Sequence[Interval]) -> pa.Table:
    """The tasks of all spans. Only reading can tell how many rows their offsets hold."""
    found: list[tuple[int, int, Stretch]] = []
    for number, span in enumerate(spans):
        start, end = to_us(span.start), to_us(span.end)
        for partition in borders.topic.partitions:
            stretch = borders.stretch(partition, span)
            first = borders.first(partition, span)
            if stretch.first < stretch.end:
                is_first = first is not None and first.offset == stretch.first
                stamp = min(first.timestamp_ms * 1000, end) if first and is_first else start
                hour = int(hours_within(np.array([stamp]), start, end)[0])
                found.append((number, hour, stretch))
    found.sort(key=lambda task: (task[0], task[1], task[2].path))
    rows = [_row(*task, borders.version(task[2].partition)) for task in found]
    return pa.Table.from_pylist(rows, schema=TASK_SCHEMA)


def _row(span: int, hour: int, stretch: Stretch, version: TopicVersion) -> dict[str, object]:
    row_range = {
        "path": stretch.path,
        "first": stretch.first,
        "end": stretch.end,
        "rows": None,
        "size_bytes": 0,
        "version": version.text,
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


def fingerprint(borders: TopicBorders, span: Interval) -> str:
    """Changes when the topic was recreated or the span holds other offsets."""
    held = [
        (partition, stretch.first, stretch.end)
        for partition in borders.topic.partitions
        if (stretch := borders.stretch(partition, span)).first < stretch.end
    ]
    text = json.dumps([borders.topic.topic_id, borders.topic.name, held])
    return hashlib.sha256(text.encode()).hexdigest()
