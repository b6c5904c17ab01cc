"""Whole record batches against kafka-python's stock path, on a real broker.

The hook is private API: this comparison is what allows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from support.projects import Topic
from support.topic_changes import transactions

from forebay.datatasks.sources.common.rows.offset_runs import ABORTED, CONTROL, RECORDS
from forebay.datatasks.sources.kafka.producer import publish
from forebay.datatasks.sources.kafka.read import Access, Stretch, read_messages
from forebay.datatasks.sources.kafka.wire import records as kafka_records
from forebay.errors import ConfigError, DataError

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


Record = tuple[int, int, bytes | None]


def records(bootstrap: str, stretch: Stretch) -> list[Record]:
    batches = read_messages(Access(bootstrap, {}, 20.0), stretch)
    return [
        record
        for batch in batches
        for record in zip(batch.offsets, batch.timestamps, batch.values, strict=True)
    ]


def stock(bootstrap: str, stretch: Stretch) -> list[Record]:
    """The same by kafka-python's own path, which passes over what is no record."""
    from kafka import KafkaConsumer, TopicPartition

    place = TopicPartition(stretch.topic, stretch.partition)
    found: list[Record] = []
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, isolation_level="read_committed"
    )
    with closing(consumer):
        consumer.assign([place])
        consumer.seek(place, stretch.first)
        while consumer.position(place) < stretch.end:
            polled = consumer.poll(500).get(place, [])
            found += [(each.offset, each.timestamp, each.value) for each in polled]
    return [record for record in found if record[0] < stretch.end]


def kinds(bootstrap: str, stretch: Stretch) -> list[tuple[int, int, int]]:
    """What the offsets are, in runs as long as they are."""
    found: list[tuple[int, int, int]] = []
    for messages in read_messages(Access(bootstrap, {}, 20.0), stretch):
        for run in messages.runs:
            if found and found[-1][1:] == (run.first, run.kind):
                found[-1] = (found[-1][0], run.end, run.kind)
            else:
                found.append(tuple(run))
    return found


@pytest.mark.parametrize(
    ("compression", "settings"),
    [(None, {}), ("gzip", {}), (None, {"message_timestamp_type": "LogAppendTime"})],
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
        assert ours == stock(kafka_bootstrap, stretch)
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


def test_without_the_hook_nothing_is_read(
    kafka_bootstrap: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could tell a marker from a lost record then."""
    topic = new_topic(1)
    publish(kafka_bootstrap, topic, [(b"x", START, 0)])

    def gone() -> type:
        raise AttributeError("type object 'Fetcher' has no attribute 'PartitionRecords'")

    monkeypatch.setattr(kafka_records, "_hook_class", gone)
    with pytest.raises(ConfigError, match=r"PartitionRecords.*forebay\[kafka\]"):
        records(kafka_bootstrap, Stretch(topic, 0, 0, 1))


def test_what_offsets_of_transactions_are(kafka_bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with transactions(Topic(kafka_bootstrap, topic)) as writer:
        for number in range(4):
            values = [(b"%d.%d" % (number, each), 0) for each in range(3)]
            writer.write(values, abort=number % 2 == 1)
    publish(kafka_bootstrap, topic, [(b"x", START, 0)])
    whole = [
        *((0, 3, RECORDS), (3, 4, CONTROL), (4, 7, ABORTED), (7, 8, CONTROL)),
        *((8, 11, RECORDS), (11, 12, CONTROL), (12, 15, ABORTED), (15, 16, CONTROL)),
    ]
    for first, end in ((0, 16), (2, 13), (5, 6), (3, 4), (6, 9), (15, 16)):
        stretch = Stretch(topic, 0, first, end)
        cut = [(max(a, first), min(b, end), kind) for a, b, kind in whole]
        assert kinds(kafka_bootstrap, stretch) == [run for run in cut if run[0] < run[1]]
        assert records(kafka_bootstrap, stretch) == stock(kafka_bootstrap, stretch)


def test_a_partition_that_ends_too_early_is_told_at_once(
    kafka_bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic(1)
    publish(kafka_bootstrap, topic, [(b"x", START, 0)] * 5)
    for first, told in ((2, "up to 9 were planned, but it now ends at 5"), (7, "truncated")):
        started = time.monotonic()
        with pytest.raises(DataError, match=f"partition 0: .*{told}"):
            records(kafka_bootstrap, Stretch(topic, 0, first, 9))
        assert time.monotonic() - started < 5
