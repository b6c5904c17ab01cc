"""Whole record batches against kafka-python's stock path, on a real broker.

The hook is private API: this comparison is what allows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.datatasks.sources.kafka import records as kafka_records
from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.producer import publish
from forebay.datatasks.sources.kafka.read import (
    Access,
    Stretch,
    partitions_with_gaps,
    read_messages,
)

pytestmark = pytest.mark.kafka
NewTopic = Callable[..., str]
START = datetime(2013, 6, 1, tzinfo=UTC)
MESSAGES = 2000


def value_of(number: int) -> bytes | None:
    return None if number % 97 == 5 else (b"%d " % number) * (1 + number % 300)


def fill(bootstrap: str, topic: str, compression: str | None = None) -> None:
    messages = (
        (value_of(number), START + timedelta(seconds=number), 0) for number in range(MESSAGES)
    )
    publish(bootstrap, topic, messages, compression=compression)


def records(
    bootstrap: str, stretch: Stretch, *, stock: bool = False
) -> list[tuple[int, int, bytes | None]]:
    batches = read_messages(Access(bootstrap, {}, 20.0), stretch, stock=stock)
    return [
        record
        for batch in batches
        for record in zip(batch.offsets, batch.timestamps, batch.values, strict=True)
    ]


@pytest.mark.parametrize(
    ("compression", "settings"),
    [
        (None, {}),
        ("gzip", {}),
        (None, {"message_timestamp_type": "LogAppendTime"}),
    ],
    ids=["plain", "gzip", "log-append-time"],
)
def test_batches_equal_the_stock_path(
    kafka_bootstrap: str, new_topic: NewTopic, compression: str | None, settings: dict[str, str]
) -> None:
    topic = new_topic(1, **settings)
    fill(kafka_bootstrap, topic, compression)
    for first, end in ((0, MESSAGES), (1, 2), (777, 1333), (1999, 2000)):
        stretch = Stretch(topic, 0, first, end)
        ours = records(kafka_bootstrap, stretch)
        assert ours == records(kafka_bootstrap, stretch, stock=True)
        assert [offset for offset, _, _ in ours] == list(range(first, end))
        assert [value for _, _, value in ours] == [value_of(n) for n in range(first, end)]


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_codecs_that_the_client_has_no_library_for(
    kafka_bootstrap: str, new_topic: NewTopic, codec: str
) -> None:
    """The broker compresses anew: its Java codecs are the writers here."""
    topic = new_topic(1, compression_type=codec)
    fill(kafka_bootstrap, topic)
    found = records(kafka_bootstrap, Stretch(topic, 0, 0, MESSAGES))
    assert [value for _, _, value in found] == [value_of(n) for n in range(MESSAGES)]


def test_without_the_hook_messages_come_one_by_one_and_it_is_said_once(
    kafka_bootstrap: str,
    new_topic: NewTopic,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = new_topic(1)
    fill(kafka_bootstrap, topic)

    def gone() -> type:
        raise AttributeError("type object 'Fetcher' has no attribute 'PartitionRecords'")

    monkeypatch.setattr(kafka_records, "_hook_class", gone)
    kafka_records._say_once.cache_clear()
    stretch = Stretch(topic, 0, 0, MESSAGES)
    with caplog.at_level(logging.WARNING, logger=kafka_records.__name__):
        first = records(kafka_bootstrap, stretch)
        second = records(kafka_bootstrap, stretch)
    assert first == second
    assert [value for _, _, value in first] == [value_of(n) for n in range(MESSAGES)]
    assert len(caplog.records) == 1


def transactional_producer(bootstrap: str, name: str) -> Any:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    producer.init_transactions()
    return producer


@pytest.mark.parametrize("stock", [False, True])
def test_transactions_aborted_ones_are_left_out_and_markers_end_the_stretch(
    kafka_bootstrap: str, new_topic: NewTopic, stock: bool
) -> None:
    topic = new_topic(2)
    producer = transactional_producer(kafka_bootstrap, topic)
    try:
        for number, ending in enumerate(["commit", "abort", "commit", "abort"]):
            producer.begin_transaction()
            for each in range(3):
                producer.send(topic, value=b"%d.%d" % (number, each), partition=0)
            producer.flush()
            if ending == "commit":
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()
    fill_plain = [(b"x", START, 1)]
    publish(kafka_bootstrap, topic, fill_plain)
    with Cluster(kafka_bootstrap) as cluster:
        found = cluster.topic(topic)
        assert found is not None
        ends = cluster.end_offsets(found)
    assert ends == {0: 16, 1: 1}
    values = [v for _, _, v in records(kafka_bootstrap, Stretch(topic, 0, 0, 16), stock=stock)]
    assert values == [b"0.0", b"0.1", b"0.2", b"2.0", b"2.1", b"2.2"]
    every = [Stretch(topic, partition, 0, end) for partition, end in ends.items()]
    assert partitions_with_gaps(Access(kafka_bootstrap, {}, 20.0), every) == {0}
