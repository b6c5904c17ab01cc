"""Reads stretches of partitions: a consumer without a group, from an offset to an end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from forebay.datatasks.sources.common.contract.option_types import MESSAGE_BYTES_MAX
from forebay.datatasks.sources.kafka.client import (
    CONNECT_SECONDS,
    kafka_library,
    new_client,
    wait_for_port,
)
from forebay.datatasks.sources.kafka.wire.messages import Messages, messages_within
from forebay.datatasks.sources.kafka.wire.records import StoredBatch, hand_out_batches
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

    @property
    def place(self) -> str:
        return f"topic {self.topic}, partition {self.partition}"

    def between(self, first: int, end: int) -> Stretch:
        return replace(self, first=first, end=end)


@dataclass(frozen=True)
class Access:
    """How to reach the brokers, how long to wait for the next record, and how large one may be.

    bytes_max: of a record batch, decompressed. A larger one is not read, and says so.
    """

    bootstrap: str
    client: Mapping[str, Any]
    fetch_seconds: float = FETCH_SECONDS
    bytes_max: int = MESSAGE_BYTES_MAX


def read_messages(access: Access, stretch: Stretch) -> Iterator[Messages]:
    with closing(Reader(access)) as reader:
        yield from reader.messages(stretch)


class Reader:
    """Reads one stretch after the other. Its consumer is recreated when the connection is lost."""

    def __init__(self, access: Access, fetch_bytes: int = _FETCH_BYTES) -> None:
        """Nothing is connected yet. fetch_bytes: what is asked for at a time, or one batch."""
        self.access = access
        self._fetch_bytes = fetch_bytes
        self._consumer: Any = None

    def messages(self, stretch: Stretch) -> Iterator[Messages]:
        """Messages of the stretch in offset order, and what each offset without one is.

        No transaction may be open in it.

        Raises:
            DataError: when records of the stretch were deleted, or the partition ends before it
                does, or they are corrupt.
            InfrastructureError: when nothing comes for `fetch_seconds`.
        """
        reading = _Reading(self, stretch)
        while reading.position < stretch.end:
            errors = kafka_library().errors
            try:
                yield from reading.session()
            except (
                errors.OffsetOutOfRangeError,
                errors.NoOffsetForPartitionError,
                errors.LogTruncationError,
            ) as error:
                raise DataError(
                    f"{stretch.place}: the offsets {stretch.first} to {stretch.end} were planned, "
                    "but some of their records were deleted (retention, or a truncated log): "
                    f"{error}. Forget the window, and declare `starts` after it in the source"
                ) from error
            except errors.CorruptRecordError as error:
                raise DataError(f"{stretch.place}: {error}") from error
            except errors.KafkaError as error:
                raise InfrastructureError(
                    f"Kafka at {self.access.bootstrap}: reading {stretch.path} failed: {error}"
                ) from error

    def connected(self, patience_seconds: float) -> Any:  # noqa: ANN401
        """The consumer. One has no group: positions are ours to keep, nothing is committed."""
        if self._consumer is None:
            wait_for_port(self.access.bootstrap, patience_seconds)
            self._consumer = new_client(
                "KafkaConsumer",
                self.access.bootstrap,
                self.access.client,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
                max_partition_fetch_bytes=self._fetch_bytes,
                metrics_enabled=False,
                allow_auto_create_topics=False,
                bootstrap_timeout_ms=int(patience_seconds * 1000),
                retry_backoff_ms=_IDLE_MS,
            )
            _hasten_metadata(self._consumer)
            hand_out_batches(self._consumer)
        return self._consumer

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False)


class _Reading:
    """How far a stretch was read; outlives the connections that are lost on the way."""

    def __init__(self, reader: Reader, stretch: Stretch) -> None:
        self.position = stretch.first
        self._reader = reader
        self._access = reader.access
        self._stretch = stretch
        self._heard = time.monotonic()
        self._connected = False

    def session(self) -> Iterator[Messages]:
        """Read with one consumer until the end, or until its connection is lost."""
        library = kafka_library()
        partition = library.TopicPartition(self._stretch.topic, self._stretch.partition)
        left = self._heard + self._access.fetch_seconds - time.monotonic()
        consumer = self._reader.connected(max(left, 1.0) if self._connected else CONNECT_SECONDS)
        self._connected = True
        consumer.assign([partition])
        consumer.seek(partition, self.position)
        while self.position < self._stretch.end:
            try:
                found = consumer.poll(_POLL_MS, max_records=_BATCHES_PER_POLL)
                if not found:
                    ends = consumer.end_offsets([partition], timeout_ms=_POLL_MS)
                    self._require_end(ends[partition])
            except library.errors.KafkaError as error:
                if not error.retriable:
                    raise
                self._reader.close()
                self._give_up_when_silent(str(error))
                return  # a broker that restarts: connect again, go on from the position
            yield from self._within(found.get(partition, []))

    def _within(self, batches: list[StoredBatch]) -> Iterator[Messages]:
        before = self.position
        for batch in batches:
            if batch.offset < self.position or self.position >= self._stretch.end:
                continue
            read = batch.read(self._access.bytes_max)
            messages = messages_within(read, self.position, self._stretch.end)
            if messages is not None:
                yield messages
                self.position = messages.end
        if self.position > before:
            self._heard = time.monotonic()
        else:
            self._give_up_when_silent("the broker is down, or compaction left nothing there")

    def _require_end(self, end: int) -> None:
        if end < self._stretch.end:
            raise DataError(
                f"{self._stretch.place}: offsets up to {self._stretch.end} were planned, but it "
                f"now ends at {end}: it was truncated (an unclean leader election does that), and "
                "what was planned is lost. Declare it as a new source, under another name, with "
                "`starts`"
            )

    def _give_up_when_silent(self, reason: str) -> None:
        if time.monotonic() - self._heard > self._access.fetch_seconds:
            raise InfrastructureError(
                f"Kafka at {self._access.bootstrap}: {self._stretch.path} returned no record at "
                f"offset {self.position} (of {self._stretch.end}) for "
                f"{self._access.fetch_seconds:g} s: {reason}"
            )


def _hasten_metadata(consumer: Any) -> None:  # noqa: ANN401
    """A new consumer asks for its topic 0.1 s after its first request: a back-off without option.

    Every task has a consumer of its own. Where the private attribute is gone, tasks start later.
    """
    with contextlib.suppress(AttributeError):
        attrgetter("_cluster")(consumer).config["retry_backoff_ms"] = _IDLE_MS
