"""Reads whole Kafka record batches: one Python object for each batch, not for each message.

kafka-python builds two objects and calls seven functions per message. Its fetcher looks up the
class `PartitionRecords` through the instance, so a subclass set there can hand out batches. That
is private API of kafka-python 3.0 (pinned in pyproject.toml), and a test compares it with the stock
path on a real broker. The stock path cannot stand in for it: it passes over markers and aborted
messages silently, so that nobody could tell them from lost ones.

What comes from the broker is small; decompressed it may be large. So the consumer hands out batches
as they are stored, and each is decompressed when it is its turn.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from forebay.datatasks.sources.common.rows.offset_runs import ABORTED, CONTROL, RECORDS
from forebay.datatasks.sources.kafka.wire.codecs import CodecError, TooLargeError, decompress
from forebay.datatasks.sources.kafka.wire.walk import Fields, Ints, fields_of
from forebay.errors import ConfigError

_fetcher_of = attrgetter("_fetcher")
_buffer_of = attrgetter("_buffer")
# Each message is a few objects of Python, however small it is.
_MESSAGES_MAX = 1_000_000


class MessageBatch(NamedTuple):
    """Messages of one record batch, in offset order.

    first, offset: the first and the last offset that the batch stands for, compacted ones included.
    kind: of its offsets. A batch of control records, or of aborted ones, has no messages.
    leader_epoch: of the partition's leader that wrote it.
    refusal: why no message of it was read; empty where they were.
    """

    first: int
    offset: int
    offsets: list[int]
    timestamps: list[int]
    values: list[bytes | None]
    kind: int
    leader_epoch: int
    refusal: str = ""


class StoredBatch(NamedTuple):
    """A record batch as the broker has it.

    offset: the last one that it stands for; the fetcher compares it with the position to skip what
        comes after.
    read: its messages, where they take no more than that many bytes.
    """

    offset: int
    read: Callable[[int], MessageBatch]


def hand_out_batches(consumer: Any) -> None:  # noqa: ANN401 - kafka-python ships no types
    """Make `consumer.poll` return each `StoredBatch`; ConfigError when it has no place for that."""
    try:
        _fetcher_of(consumer).PartitionRecords = _hook_class()
    except AttributeError as error:
        raise ConfigError(
            f"this version of kafka-python cannot hand out record batches ({error}): install the "
            "one that forebay[kafka] asks for"
        ) from error


@functools.cache
def _hook_class() -> type:
    from kafka.consumer.fetcher import Fetcher

    # Built without a class statement: the base ships no types.
    return type(
        "BatchPartitionRecords", (Fetcher.PartitionRecords,), {"_unpack_records": _unpack_records}
    )


def _unpack_records(self: Any, topic_partition: Any, records: Any, *_: object) -> Iterator[Any]:  # noqa: ANN401
    """Replaces the method of that name: same order of checks, one item for each batch."""
    from kafka.errors import CorruptRecordError

    while (batch := _next_batch(self, topic_partition, records)) is not None:
        if self.check_crcs and not batch.validate_crc():
            raise CorruptRecordError(
                f"record batch of {topic_partition} at offset {batch.base_offset} fails its CRC"
            )
        if batch.magic < 2:
            self.next_fetch_offset = batch.base_offset + 1
            self.bytes_read += batch.size_in_bytes
            yield StoredBatch(batch.base_offset, functools.partial(_old_format, batch))
            continue
        if batch.magic > 2:
            raise CorruptRecordError(
                f"record batch of {topic_partition} has the unknown format {batch.magic}"
            )
        self.leader_epoch = batch.leader_epoch
        left_out = _left_out(self, batch)
        if left_out is None:
            read = functools.partial(_parse, batch)
            self.records_read += batch.records_count
        else:
            read = functools.partial(_without_messages, batch, left_out)
        # Set before the yield: the fetcher reads it as soon as it has taken the item. The next
        # offset of the header also covers messages that compaction removed.
        self.next_fetch_offset = batch.next_offset
        self.bytes_read += batch.size_in_bytes
        yield StoredBatch(batch.last_offset, read)
    self.drain()


def _next_batch(self: Any, topic_partition: Any, records: Any) -> Any:  # noqa: ANN401
    from kafka.errors import CorruptRecordError

    try:
        return records.next_batch()
    # The client asserts that lengths are right in the formats of before Kafka 0.11.
    except (AssertionError, CorruptRecordError, struct.error) as error:
        raise CorruptRecordError(
            f"a record batch of {topic_partition} at offset {self.next_fetch_offset} or after it "
            "is truncated, or its length is wrong"
        ) from error


def _old_format(batch: Any, _bytes_max: int) -> MessageBatch:  # noqa: ANN401
    """No message: nothing bounds what the client's reader of these formats decompresses.

    They are found in topics that were written before 2017 only. The offset of a compressed batch is
    its last one, and how many there are before it is not known: they count from the batch before.
    """
    refusal = (
        f"its record batch has format {batch.magic}, from before Kafka 0.11, which is not "
        "supported: copy the topic with a newer producer"
    )
    return MessageBatch(0, batch.base_offset, [], [], [], RECORDS, -1, refusal)


def _without_messages(batch: Any, kind: int, _bytes_max: int) -> MessageBatch:  # noqa: ANN401
    return MessageBatch(batch.base_offset, batch.last_offset, [], [], [], kind, batch.leader_epoch)


def _left_out(self: Any, batch: Any) -> int | None:  # noqa: ANN401
    """The kind of a control batch, or of one whose transaction was aborted (read_committed)."""
    from kafka.protocol.consumer import IsolationLevel

    if self.isolation_level == IsolationLevel.READ_COMMITTED and batch.has_producer_id():
        attrgetter("_consume_aborted_transactions_up_to")(self)(batch.last_offset)
        if _is_abort_marker(self, batch):
            self.aborted_producer_ids.discard(batch.producer_id)
        elif attrgetter("_is_batch_aborted")(self)(batch):
            return ABORTED
    return CONTROL if batch.is_control_batch else None


def _is_abort_marker(self: Any, batch: Any) -> bool:  # noqa: ANN401
    """Whether a batch ends an aborted transaction. Compaction may leave one without its record."""
    from kafka.errors import CorruptRecordError

    if batch.records_count < 1:
        return False
    try:
        return bool(attrgetter("_contains_abort_marker")(self)(batch))
    except (CorruptRecordError, TypeError, struct.error) as error:
        raise CorruptRecordError(
            f"the control batch of {self.topic_partition} at offset {batch.base_offset} cannot be "
            f"parsed: {error}"
        ) from error


def _refused(batch: Any, why: str) -> MessageBatch:  # noqa: ANN401
    return _without_messages(batch, RECORDS, 0)._replace(refusal=f"its record batch {why}")


def _parse(batch: Any, bytes_max: int) -> MessageBatch:  # noqa: ANN401
    """The messages of a batch; keys and headers are skipped, values are cut out.

    The CRC of the batch is right, so that it is as its producer wrote it, whatever it is.
    """
    count = batch.records_count
    if count > _MESSAGES_MAX:
        return _refused(batch, f"has {count:,} records, and at most {_MESSAGES_MAX:,} are read")
    body = bytes(memoryview(_buffer_of(batch))[batch.HEADER_STRUCT.size :])
    try:
        records = decompress(batch.compression_type, body, bytes_max)
        fields = fields_of(records, count)
    except MemoryError:
        return _refused(batch, "needs more memory than there is")
    except (TooLargeError, CodecError) as error:
        return _refused(batch, str(error))
    except (IndexError, ValueError) as error:
        return _refused(batch, f"cannot be parsed: {error}")
    offsets = fields.offsets + batch.base_offset
    if fields.end != len(records) or not _rise(offsets, batch.base_offset, batch.last_offset):
        return _refused(batch, "has bytes after its last record, or offsets that do not rise")
    return MessageBatch(
        batch.base_offset,
        batch.last_offset,
        offsets.tolist(),
        _timestamps(batch, fields).tolist(),
        fields.values,
        RECORDS,
        batch.leader_epoch,
    )


def _rise(offsets: Ints, first: int, last: int) -> bool:
    if len(offsets) == 0:
        return first <= last
    within = first <= offsets[0] and offsets[-1] <= last
    return bool(within and (offsets[:-1] < offsets[1:]).all())


def _timestamps(batch: Any, fields: Fields) -> Ints:  # noqa: ANN401
    if batch.timestamp_type == batch.LOG_APPEND_TIME:
        return np.full(len(fields.timestamps), batch.max_timestamp, np.int64)
    found: Ints = fields.timestamps + batch.first_timestamp  # wraps around, as in Java
    return found
