"""How far a consumer group's committed offsets are behind the ends of a topic's partitions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import datetime

from forebay.datatasks.sources.common.base import PartitionLag
from forebay.datatasks.sources.kafka.client import Cluster, Topic
from forebay.datatasks.sources.kafka.read import Access, Reader, Stretch
from forebay.errors import DataError, InfrastructureError
from forebay.system.instants import shown_instant

_LOOK_BYTES = 64 << 10
_LOOK_SECONDS = 5.0
# Each costs a fetch; of more partitions than these the oldest records are not looked at.
_LOOKED_AT = 64


def partition_lags(
    cluster: Cluster, access: Access, topic: Topic, group: str
) -> list[PartitionLag]:
    """The lag of each partition; what was never committed counts from the first record on.

    Raises:
        InfrastructureError: when the cluster does not answer.
    """
    committed = cluster.committed(group, topic)
    firsts, ends = cluster.first_offsets(topic), cluster.stable_ends(topic)
    stretches = [
        Stretch(topic.name, each, max(firsts[each], committed.get(each, 0)), ends[each].offset)
        for each in topic.partitions
    ]
    behind = sorted(
        (each for each in stretches if each.first < each.end),
        key=lambda each: each.first - each.end,
    )
    oldest: dict[int, datetime | None] = {}
    with closing(Reader(replace(access, fetch_seconds=_LOOK_SECONDS), _LOOK_BYTES)) as reader:
        for each in behind[:_LOOKED_AT]:
            oldest[each.partition] = _first_time(reader, each)
    return [
        PartitionLag(str(each.partition), max(0, each.end - each.first), oldest.get(each.partition))
        for each in stretches
    ]


def _first_time(reader: Reader, stretch: Stretch) -> datetime | None:
    """The time of the first record, or None. One that nobody stamped has the time -1."""
    try:
        for messages in reader.messages(stretch):
            if messages.timestamps:
                return shown_instant(messages.timestamps[0] * 1000)
    except (DataError, InfrastructureError):  # retention passes it by, or it is slow: no time then
        return None
    return None
