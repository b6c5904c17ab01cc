"""Stretches read by confluent-kafka are what kafka-python reads, markers and errors included."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from support.projects import Topic
from support.topic_changes import transactions

from forebay.datatasks.sources.common.offset_runs import ABORTED, CONTROL, RECORDS
from forebay.datatasks.sources.kafka import confluent
from forebay.datatasks.sources.kafka.confluent import read_messages_confluent
from forebay.datatasks.sources.kafka.messages import Messages
from forebay.datatasks.sources.kafka.producer import publish
from forebay.datatasks.sources.kafka.read import Access, Reader, Stretch, read_messages
from forebay.errors import DataError, InfrastructureError

pytestmark = pytest.mark.kafka
NewTopic = Callable[..., str]
START = datetime(2013, 6, 1, tzinfo=UTC)
MESSAGES = 2000
Record = tuple[int, int, bytes | None]


def value_of(number: int) -> bytes | None:
    return None if number % 97 == 5 else (b"%d " % number) * (1 + number % 300)


def records(found: Iterator[Messages]) -> list[Record]:
    return [
        record
        for messages in found
        for record in zip(messages.offsets, messages.timestamps, messages.values, strict=True)
    ]


def kinds(found: Iterator[Messages]) -> list[tuple[int, int, int]]:
    """What the offsets are, in runs as long as they are."""
    joined: list[tuple[int, int, int]] = []
    for messages in found:
        for run in messages.runs:
            if joined and joined[-1][1:] == (run.first, run.kind):
                joined[-1] = (joined[-1][0], run.end, run.kind)
            else:
                joined.append(tuple(run))
    return joined


@pytest.mark.parametrize("codec", ["producer", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_those_of_kafka_python(
    kafka_bootstrap: str, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic(1, compression_type=codec)
    sent = ((value_of(n), START + timedelta(seconds=n), 0) for n in range(MESSAGES))
    publish(kafka_bootstrap, topic, sent)
    access = Access(kafka_bootstrap, {}, 20.0)
    for first, end in ((0, MESSAGES), (777, 1333), (1999, 2000), (5, 5)):
        stretch = Stretch(topic, 0, first, end)
        found = records(read_messages_confluent(access, stretch))
        assert found == records(read_messages(access, stretch))
        assert [offset for offset, _, _ in found] == list(range(first, end))


def test_garbage_is_not_looked_for_while_messages_are_read(
    kafka_bootstrap: str, new_topic: NewTopic
) -> None:
    """It looks at every message that is held, which costs as much as reading them."""
    topic, count = new_topic(1), 20_000
    publish(kafka_bootstrap, topic, ((b"%d" % number, START, 0) for number in range(count)))
    reading = read_messages_confluent(
        Access(kafka_bootstrap, {}, 20.0), Stretch(topic, 0, 0, count)
    )
    read = len(next(reading).values)  # connected
    before = gc.get_stats()[0]["collections"]
    read += sum(len(messages.values) for messages in reading)
    assert gc.get_stats()[0]["collections"] - before < count // 4_000
    assert read == count


@pytest.mark.parametrize("holes_max", [0, 1, 100])
def test_offsets_of_transactions_are_what_kafka_python_says(
    kafka_bootstrap: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch, holes_max: int
) -> None:
    opened = []

    class Counted(Reader):
        def __init__(self, access: Access) -> None:
            super().__init__(access)
            opened.append(self)

    monkeypatch.setattr(confluent, "_HOLES_MAX", holes_max)
    monkeypatch.setattr(confluent, "Reader", Counted)
    topic = new_topic(1)
    with transactions(Topic(kafka_bootstrap, topic)) as writer:
        for number in range(8):
            values = [(b"%d.%d" % (number, each), 0) for each in range(3)]
            writer.write(values, abort=number % 3 == 1)
    access = Access(kafka_bootstrap, {}, 20.0)
    stretch = Stretch(topic, 0, 0, 32)
    wanted = kinds(read_messages(access, stretch))
    assert {kind for _, _, kind in wanted} == {RECORDS, CONTROL, ABORTED}
    assert kinds(read_messages_confluent(access, stretch)) == wanted
    assert len(opened) <= holes_max + 1, "each is a connection"
    assert records(read_messages_confluent(access, stretch)) == records(
        read_messages(access, stretch)
    )


def test_what_is_not_there_is_an_error_at_once(kafka_bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    publish(kafka_bootstrap, topic, [(b"x", START, 0)] * 3)
    access = Access(kafka_bootstrap, {}, 20.0)
    with pytest.raises(DataError, match="offsets up to 5 were planned, but it now ends at 3"):
        list(read_messages_confluent(access, Stretch(topic, 0, 0, 5)))
    with pytest.raises(DataError, match="offsets 9 to 12 were planned, but some of their records"):
        list(read_messages_confluent(access, Stretch(topic, 0, 9, 12)))


def test_nobody_listens() -> None:
    access = Access("127.0.0.1:1", {}, 1.0)
    with pytest.raises(InfrastructureError, match=r"no Kafka broker answers at 127\.0\.0\.1:1"):
        list(read_messages_confluent(access, Stretch("clicks", 0, 0, 1)))
