"""Reads one stretch of one partition: a consumer without a group, from an offset to an end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from forebay.datatasks.sources.kafka.client import (
    CONNECT_SECONDS,
    kafka_library,
    new_client,
    wait_for_port,
)
from forebay.datatasks.sources.kafka.records import MessageBatch, batches_of, hand_out_batches
from forebay.errors import DataError, InfrastructureError

FETCH_SECONDS = 60.0  # a broker restart fits in, and so does an open transaction's time limit
_POLL_MS = 500
_IDLE_MS = 5  # a new consumer sleeps this long until it knows the partition's leader
_BATCHES_PER_POLL = 64
_FETCH_BYTES = 4 << 20


@dataclass(frozen=True)
class Stretch:
    """Offsets [first, end) of a partition."""

    topic: str
    partition: int
    first: int
    end: int

    @property
    def path(self) -> str:
        """`topic/partition`, as ranges and row ids name it."""
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True)
class Access:
    """How to reach the brokers, and how long to wait for the next record."""

    bootstrap: str
    client: Mapping[str, Any]
    fetch_seconds: float = FETCH_SECONDS


def read_messages(
    access: Access, stretch: Stretch, *, stock: bool = False
) -> Iterator[MessageBatch]:
    """Messages of the stretch in offset order; offsets without a record are passed over.

    The end is reached when the position is: control records and compacted offsets before it
    never come as messages. Records of open transactions are waited for, aborted ones left out.
    `stock` reads through kafka-python's own path.

    Raises:
        DataError: when records of the stretch were deleted or are corrupt.
        InfrastructureError: when nothing comes for `fetch_seconds`.
    """
    reading = _Reading(access, stretch, stock=stock)
    while reading.position < stretch.end:
        with _named_errors(access, stretch):
            yield from reading.session()


class _Reading:
    """How far a stretch was read; outlives the connections that are lost on the way."""

    def __init__(self, access: Access, stretch: Stretch, *, stock: bool) -> None:
        self.position = stretch.first
        self._access = access
        self._stretch = stretch
        self._stock = stock
        self._heard = time.monotonic()
        self._connected = False

    def session(self) -> Iterator[MessageBatch]:
        """Read with one consumer until the end, or until its connection is lost."""
        library = kafka_library()
        partition = library.TopicPartition(self._stretch.topic, self._stretch.partition)
        left = self._heard + self._access.fetch_seconds - time.monotonic()
        patience = max(left, 1.0) if self._connected else CONNECT_SECONDS
        wait_for_port(self._access.bootstrap, patience)
        with _consumer(self._access, patience, stock=self._stock) as consumer:
            self._connected = True
            consumer.assign([partition])
            consumer.seek(partition, self.position)
            while self.position < self._stretch.end:
                try:
                    found = consumer.poll(_POLL_MS, max_records=_BATCHES_PER_POLL)
                    reached = consumer.position(partition, timeout_ms=_POLL_MS)
                except library.errors.KafkaError as error:
                    if not error.retriable:
                        raise
                    self._give_up_when_silent(str(error))
                    return  # a broker that restarts: connect again, go on from the position
                for batch in batches_of(found.get(partition, [])):
                    if trimmed := _inside(batch, self._stretch):
                        yield trimmed
                self._moved(reached)

    def _moved(self, reached: int | None) -> None:
        if reached is not None and reached > self.position:
            self.position, self._heard = reached, time.monotonic()
        else:
            self._give_up_when_silent("a transaction stays open, or the broker is down")

    def _give_up_when_silent(self, reason: str) -> None:
        if time.monotonic() - self._heard > self._access.fetch_seconds:
            raise InfrastructureError(
                f"Kafka at {self._access.bootstrap}: {self._stretch.path} gave no record at offset "
                f"{self.position} (of {self._stretch.end}) for {self._access.fetch_seconds:g} s: "
                f"{reason}"
            )


def partitions_with_gaps(access: Access, stretches: list[Stretch]) -> set[int]:
    """Partitions that transactions write to: there are fewer records than offsets.

    Looks at the last offset of each stretch: a transaction leaves its marker or its mark there.
    """
    found = set()
    for stretch in stretches:
        last = Stretch(stretch.topic, stretch.partition, stretch.end - 1, stretch.end)
        batches = list(read_messages(access, last))
        if not batches or any(batch.transactional for batch in batches):
            found.add(stretch.partition)
    return found


def _inside(batch: MessageBatch, stretch: Stretch) -> MessageBatch | None:
    """The part of a batch that the stretch covers; its borders may lie inside a batch."""
    if batch.offsets[0] >= stretch.first and batch.offsets[-1] < stretch.end:
        return batch
    kept = [n for n, offset in enumerate(batch.offsets) if stretch.first <= offset < stretch.end]
    if not kept:
        return None
    chosen = slice(kept[0], kept[-1] + 1)
    return batch._replace(
        offsets=batch.offsets[chosen],
        timestamps=batch.timestamps[chosen],
        values=batch.values[chosen],
    )


@contextmanager
def _consumer(access: Access, patience_seconds: float, *, stock: bool) -> Iterator[Any]:
    """No group: positions are ours to keep, and nothing is committed behind our back."""
    consumer = new_client(
        kafka_library().KafkaConsumer,
        access.bootstrap,
        access.client,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        max_partition_fetch_bytes=_FETCH_BYTES,
        metrics_enabled=False,
        allow_auto_create_topics=False,
        bootstrap_timeout_ms=int(patience_seconds * 1000),
        retry_backoff_ms=_IDLE_MS,
    )
    try:
        _hasten_metadata(consumer)
        if not stock:
            hand_out_batches(consumer)
        yield consumer
    finally:
        consumer.close(autocommit=False)


def _hasten_metadata(consumer: Any) -> None:  # noqa: ANN401
    """A new consumer asks for its topic 0.1 s after its first request: a back-off without option.

    Every task has a consumer of its own. Where the private attribute is gone, tasks start later.
    """
    with contextlib.suppress(AttributeError):
        attrgetter("_cluster")(consumer).config["retry_backoff_ms"] = _IDLE_MS


@contextmanager
def _named_errors(access: Access, stretch: Stretch) -> Iterator[None]:
    errors = kafka_library().errors
    try:
        yield
    except (errors.OffsetOutOfRangeError, errors.NoOffsetForPartitionError) as error:
        raise DataError(
            f"topic {stretch.topic}, partition {stretch.partition}: records from offset "
            f"{stretch.first} on were planned and are deleted (retention): {error}"
        ) from error
    except errors.CorruptRecordError as error:
        raise DataError(f"topic {stretch.topic}, partition {stretch.partition}: {error}") from error
    except errors.KafkaError as error:
        raise InfrastructureError(
            f"Kafka at {access.bootstrap}: reading {stretch.path} failed: {error}"
        ) from error
