"""Reads whole Kafka record batches: one Python object for each batch, not for each message.

kafka-python builds two objects and calls seven functions per message. Its fetcher looks up the
class `PartitionRecords` through the instance, so a subclass set there can hand out batches. That
is private API of kafka-python 3.0 (pinned in pyproject.toml); a test compares it with the stock
path on a real broker, and where the attribute is missing the stock path is used, said once.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from forebay.datatasks.sources.kafka.codecs import CodecError, decompress

log = logging.getLogger(__name__)

_fetcher_of = attrgetter("_fetcher")
_buffer_of = attrgetter("_buffer")


class MessageBatch(NamedTuple):
    """Messages of one record batch, in offset order.

    offset: the last offset that the batch stands for, compacted ones included; the fetcher
        compares it with the position to skip what lies behind.
    transactional: whether a transaction wrote them, so that the offsets after them have a gap
        (unknown, hence False, on the stock path).
    """

    offset: int
    offsets: list[int]
    timestamps: list[int]
    values: list[bytes | None]
    transactional: bool = False


def hand_out_batches(consumer: Any) -> bool:  # noqa: ANN401 - kafka-python ships no types
    """Make `consumer.poll` return a `MessageBatch` per record batch; False: the hook is gone."""
    try:
        fetcher = _fetcher_of(consumer)
        hook = _hook_class()
        fetcher.PartitionRecords = hook
    except AttributeError as error:
        _say_once(str(error))
        return False
    return True


def batches_of(records: list[Any]) -> Iterator[MessageBatch]:
    """What `poll` returned for one partition, by the hook or by the stock path, as batches."""
    if records and isinstance(records[0], MessageBatch):
        yield from records
    elif records:
        yield MessageBatch(
            records[-1].offset,
            [record.offset for record in records],
            [record.timestamp for record in records],
            [record.value for record in records],
        )


@functools.cache
def _say_once(reason: str) -> None:
    log.warning(
        "kafka-python has no record batch hook any more (%s): messages are read one by one, "
        "which costs about 10 times the CPU",
        reason,
    )


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

    while (batch := records.next_batch()) is not None:
        if self.check_crcs and not batch.validate_crc():
            raise CorruptRecordError(
                f"record batch of {topic_partition} at offset {batch.base_offset} fails its CRC"
            )
        if batch.magic != 2:  # formats before Kafka 0.11 exist in very old logs only
            yield from _old_format(self, batch)
            continue
        self.leader_epoch = batch.leader_epoch
        found = None if _left_out(self, batch) else _parse(batch)
        # Set before the yield: the fetcher reads it as soon as it has taken the item. The next
        # offset of the header also covers messages that compaction removed.
        self.next_fetch_offset = batch.next_offset
        if found is not None and found.offsets:
            self.records_read += len(found.offsets)
            self.bytes_read += batch.size_in_bytes
            yield found
    self.drain()


def _old_format(self: Any, batch: Any) -> Iterator[MessageBatch]:  # noqa: ANN401
    for record in batch:
        self.next_fetch_offset = record.offset + 1
        yield MessageBatch(record.offset, [record.offset], [record.timestamp], [record.value])


def _left_out(self: Any, batch: Any) -> bool:  # noqa: ANN401
    """Control batches, and batches of transactions that were aborted (read_committed)."""
    from kafka.protocol.consumer import IsolationLevel

    if self.isolation_level == IsolationLevel.READ_COMMITTED and batch.has_producer_id():
        attrgetter("_consume_aborted_transactions_up_to")(self)(batch.last_offset)
        if attrgetter("_contains_abort_marker")(self)(batch):
            self.aborted_producer_ids.discard(batch.producer_id)
        elif attrgetter("_is_batch_aborted")(self)(batch):
            return True
    return bool(batch.is_control_batch)


def _parse(batch: Any) -> MessageBatch:  # noqa: ANN401
    """Walk over the record borders; keys and headers are skipped, values are cut out."""
    from kafka.errors import CorruptRecordError

    body = bytes(memoryview(_buffer_of(batch))[batch.HEADER_STRUCT.size :])
    try:
        found, position, length = _walk(batch, decompress(batch.compression_type, body))
    except (CodecError, IndexError, ValueError) as error:
        raise CorruptRecordError(
            f"record batch at offset {batch.base_offset} cannot be parsed: {error}"
        ) from error
    if position != length:
        raise CorruptRecordError(
            f"record batch at offset {batch.base_offset} has {length - position} bytes too many"
        )
    return found


def _walk(batch: Any, body: bytes) -> tuple[MessageBatch, int, int]:  # noqa: ANN401
    from kafka.record.util import decode_varint

    base, first_timestamp = batch.base_offset, batch.first_timestamp
    offsets, timestamps = [], []
    values: list[bytes | None] = []
    position = 0
    for _ in range(batch.records_count):
        length, position = decode_varint(body, position)
        end = position + length
        timestamp, position = decode_varint(body, position + 1)  # one byte of attributes
        offset, position = decode_varint(body, position)
        key_length, position = decode_varint(body, position)
        value_length, position = decode_varint(body, position + max(key_length, 0))
        if position + max(value_length, 0) > end:
            raise ValueError(f"the value at offset {base + offset} ends behind its record")
        offsets.append(base + offset)
        timestamps.append(first_timestamp + timestamp)
        values.append(body[position : position + value_length] if value_length >= 0 else None)
        position = end
    if batch.timestamp_type == batch.LOG_APPEND_TIME:
        timestamps = [batch.max_timestamp] * len(timestamps)
    found = MessageBatch(
        batch.last_offset, offsets, timestamps, values, bool(batch.is_transactional)
    )
    return found, position, len(body)
