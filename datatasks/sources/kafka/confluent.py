"""Reads stretches of partitions with confluent-kafka, which is librdkafka in C.

It passes over markers and aborted messages silently, so that nobody could tell them from lost
ones. So holes between offsets are read by kafka-python, which says what they are; where there are
many, as in a topic with transactions, it reads the rest of the stretch too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from forebay.datatasks.sources.common.offset_runs import RECORDS, Run
from forebay.datatasks.sources.kafka.client import CONNECT_SECONDS, wait_for_port
from forebay.datatasks.sources.kafka.client_options import CONFLUENT_NAMES
from forebay.datatasks.sources.kafka.messages import Messages
from forebay.datatasks.sources.kafka.read import Access, Reader, Stretch, deleted_records
from forebay.errors import ConfigError, DataError, InfrastructureError
from forebay.system.extras import require_extra

_POLL_SECONDS = 0.1
_BYTES_AT_A_TIME = 4 << 20
# Python's garbage collector runs after 700 new objects and looks at all of them. With at most 500
# it never runs, and a message takes half the CPU.
_MESSAGES_FIRST, _MESSAGES_MAX = 64, 500
_HOLES_MAX = 16


def confluent_library() -> Any:  # noqa: ANN401 - an extra
    """The module `confluent_kafka`.

    Raises:
        MissingExtraError: when the extra `confluent` is not installed.
    """
    require_extra("confluent")
    import confluent_kafka

    return confluent_kafka


def read_messages_confluent(access: Access, stretch: Stretch) -> Iterator[Messages]:
    """The messages of one stretch: what `read_messages` gives, and raises."""
    reading = _Reading(access, stretch)
    with closing(reading):
        yield from reading.messages()


class _Reading:
    def __init__(self, access: Access, stretch: Stretch) -> None:
        self._access = access
        self._stretch = stretch
        self._library = confluent_library()
        self._position = stretch.first
        self._holes = 0
        self._wanted = _MESSAGES_FIRST
        self._consumer: Any = None

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def messages(self) -> Iterator[Messages]:
        heard = time.monotonic()
        while self._position < self._stretch.end and self._holes <= _HOLES_MAX:
            found, is_end = self._consumed()
            for messages in self._without_holes(found):
                yield messages
                heard = time.monotonic()
            if is_end:
                break
            if time.monotonic() - heard > self._access.fetch_seconds:
                raise InfrastructureError(
                    f"Kafka at {self._access.bootstrap}: {self._stretch.path} returned no record "
                    f"at offset {self._position} (of {self._stretch.end}) for "
                    f"{self._access.fetch_seconds:g} s: the broker is down, or compaction left "
                    "nothing there"
                )
        if self._position < self._stretch.end:
            yield from self._explained(self._stretch.end)

    def _consumed(self) -> tuple[list[Any], bool]:
        """The next messages of the stretch, and whether the partition ends after them."""
        if self._consumer is None:
            self._consumer = self._connected()
        found = []
        is_end = False
        # It waits until it has as many as it is asked for, or the time is over.
        wanted = min(self._wanted, self._stretch.end - self._position)
        for message in self._consumer.consume(wanted, _POLL_SECONDS):
            error = message.error()
            if error is not None:
                is_end = self._is_end(error) or is_end
            elif self._position <= message.offset() < self._stretch.end:
                found.append(message)
            else:
                is_end = is_end or message.offset() >= self._stretch.end
        if found:
            size = max(1, sum(len(message) for message in found) // len(found))
            self._wanted = min(_MESSAGES_MAX, max(1, _BYTES_AT_A_TIME // size))
        return found, is_end

    def _is_end(self, error: Any) -> bool:  # noqa: ANN401
        """Whether an error says that the partition ends; one that passes is waited out.

        Raises:
            DataError: for records that are deleted or corrupt.
        """
        name = error.name()
        if name == "_PARTITION_EOF":
            return True
        if name in {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"}:
            raise deleted_records(self._stretch, error)
        if name in {"_BAD_MSG", "_BAD_COMPRESSION", "INVALID_MSG"}:
            raise DataError(
                f"topic {self._stretch.topic}, partition {self._stretch.partition}: {error}"
            )
        if error.fatal() or name == "TOPIC_AUTHORIZATION_FAILED":
            raise InfrastructureError(
                f"Kafka at {self._access.bootstrap}: reading {self._stretch.path} failed: {error}"
            )
        return False

    def _without_holes(self, found: list[Any]) -> Iterator[Messages]:
        """Neighbours together; between them what kafka-python says of the hole.

        After too many holes the rest is left out, for kafka-python to read it at once.
        """
        first = 0
        for index, message in enumerate(found):
            expected = self._position + index - first
            if message.offset() == expected:
                continue
            if index > first:
                yield self._of(found[first:index])
            self._holes += 1
            if self._holes > _HOLES_MAX:
                return
            yield from self._explained(message.offset())
            first = index
        if len(found) > first:
            yield self._of(found[first:])

    def _of(self, found: list[Any]) -> Messages:
        offsets = [message.offset() for message in found]
        self._position = offsets[-1] + 1
        epoch = found[-1].leader_epoch()  # they never fall
        return Messages(
            offsets,
            [message.timestamp()[1] for message in found],
            [message.value() for message in found],
            [Run(offsets[0], self._position, RECORDS)],
            -1 if epoch is None else epoch,
        )

    def _explained(self, end: int) -> Iterator[Messages]:
        hole = self._stretch.between(self._position, end)
        with closing(Reader(self._access)) as reader:
            for messages in reader.messages(hole):
                yield messages
                self._position = messages.end

    def _connected(self) -> Any:  # noqa: ANN401
        wait_for_port(self._access.bootstrap, CONNECT_SECONDS)
        options = {
            "client.id": "forebay",
            **{CONFLUENT_NAMES[name]: value for name, value in self._access.client.items()},
            "bootstrap.servers": self._access.bootstrap,
            "group.id": "forebay",  # librdkafka wants one; nothing is committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
            "allow.auto.create.topics": False,
            "fetch.message.max.bytes": _BYTES_AT_A_TIME,
            "queued.max.messages.kbytes": 4 * _BYTES_AT_A_TIME >> 10,
        }
        # Told of each failed attempt; what fails for good is raised as an error of ours.
        silent = logging.getLogger(f"{__name__}.library")
        silent.setLevel(logging.CRITICAL)
        try:
            consumer = self._library.Consumer(options, logger=silent)
            partition = self._library.TopicPartition(
                self._stretch.topic, self._stretch.partition, self._position
            )
            consumer.assign([partition])
        except self._library.KafkaException as error:
            raise ConfigError(f"options.client: {error}") from error
        return consumer
