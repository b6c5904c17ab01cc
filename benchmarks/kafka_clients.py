"""CPU of reading Kafka: clients for each message, formats for each row, peers in the same rounds.

    python benchmarks/kafka_clients.py [--messages N] [--rounds N] [--bootstrap HOST:PORT]

Starts a broker of its own where no address is given. Each round runs every variant once, one after
the other; CPU seconds of this process decide (all its threads, not the broker), of which the median
and the least are told, beside the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.kafka.producer import (
    create_topic,
    ipc_message,
    json_message,
    publish,
)
from forebay.datatasks.sources.kafka.read import Access, Stretch, read_messages
from forebay.embedded.kafka.broker import Broker
from forebay.home.paths import Home
from forebay.testing.source_suite import tasks_of

AT = datetime(2026, 3, 1, 1, tzinfo=UTC)
SPAN = Interval(AT.replace(hour=0), AT.replace(hour=0) + 24 * HOUR)
ROWS_OF_A_BATCH = 256
COLUMNS = {
    "id": ColumnType.INT,
    "user": ColumnType.INT,
    "item": ColumnType.INT,
    "price": ColumnType.FLOAT,
    "clicked": ColumnType.BOOL,
    "at": ColumnType.TIMESTAMP,
    "country": ColumnType.STRING,
}
Variants = dict[str, Callable[[], int]]


def rows(count: int) -> list[dict[str, object]]:
    chance = np.random.default_rng(1)
    users, items = chance.integers(0, 1 << 40, count), chance.integers(0, 1 << 20, count)
    return [
        {
            "id": number,
            "user": int(users[number]),
            "item": int(items[number]),
            "price": round(float(users[number] % 9973) / 100, 2),
            "clicked": bool(number % 10 == 0),
            "at": AT,
            "country": ("de", "fr", "us")[number % 3],
        }
        for number in range(count)
    ]


def stock(bootstrap: str, stretch: Stretch) -> int:
    """kafka-python's own records, with its C library of CRC."""
    from kafka import KafkaConsumer, TopicPartition

    place = TopicPartition(stretch.topic, stretch.partition)
    seen = 0
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        consumer.assign([place])
        consumer.seek(place, stretch.first)
        while seen < stretch.end:
            seen += sum(map(len, consumer.poll(500, max_records=10_000).values()))
    return seen


def clients(bootstrap: str, stretch: Stretch) -> Variants:
    access = Access(bootstrap, {})
    return {
        "kafka-python, stock": lambda: stock(bootstrap, stretch),
        "forebay": lambda: sum(len(each.values) for each in read_messages(access, stretch)),
    }


def decoders(messages: list[bytes]) -> Variants:
    import pyarrow.json as paj

    ours = decoder_named("json", list(COLUMNS), COLUMNS)

    def arrow() -> int:
        """What pyarrow.json reads over all at once, which a bad message fails as a whole."""
        joined = b"\n".join(messages)
        options = paj.ParseOptions(explicit_schema=ours.schema, unexpected_field_behavior="ignore")
        blocks = paj.ReadOptions(use_threads=False, block_size=len(joined) + 1)
        table = paj.read_json(pa.BufferReader(joined), blocks, options)
        return int(table.num_rows)

    def forebay(values: list[bytes]) -> int:
        return sum(each.batch.num_rows for each in ours.decode(values))

    one_bad = [*messages[:-1], b"{"]
    return {
        "forebay, JSON": lambda: forebay(messages),
        "forebay, JSON, one message is bad": lambda: 1 + forebay(one_bad),
        "pyarrow.json alone, nothing checked": arrow,
    }


def micro_batches(bootstrap: str, topic: str, columns: list[str]) -> int:
    """Arrow messages as a data executor has them: chunks with row ids and hours."""
    options = {"bootstrap": bootstrap, "topic": topic}
    fields = {"name": "clicks", "kind": "kafka", "options": options, "columns": COLUMNS}
    with closing(open_source(SourceSpec.model_validate(fields), Path())) as source:
        tasks = tasks_of(source.scan([SPAN]), [SPAN], 0)
        chunks = (chunk for task in tasks for chunk in source.open(task, None, columns, 8192))
        return sum(chunk.batch.num_rows for chunk in chunks)


@contextmanager
def broker_at(address: str | None) -> Iterator[str]:
    if address:
        yield address
        return
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Home(Path(folder)))
        try:
            yield broker.start().bootstrap
        finally:
            broker.stop()


def measured(title: str, variants: Variants, count: int, rounds: int) -> None:
    costs: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, variant in variants.items():
            before = time.process_time()
            found = variant()
            costs[name].append((time.process_time() - before) / count * 1e6)
            if found != count:
                raise SystemExit(f"{name}: {found:,} of {count:,}")
    print(f"{title}, load {os.getloadavg()[0]:.1f}")
    for name, found in costs.items():
        print(f"  {name:40} median {statistics.median(found):6.2f} us, least {min(found):6.2f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bootstrap")
    given = parser.parse_args()
    some = rows(given.messages)
    messages = [json_message(row) for row in some]
    size = sum(map(len, messages)) // len(messages)
    measured(f"JSON of {size} bytes, a row", decoders(messages), len(messages), given.rounds)
    with broker_at(given.bootstrap) as bootstrap:
        topic, batches = f"single-{time.time_ns()}", f"batches-{time.time_ns()}"
        create_topic(bootstrap, topic, 1)
        publish(bootstrap, topic, ((each, AT, 0) for each in messages))
        stretch = Stretch(topic, 0, 0, len(messages))
        title = f"Client, a message of {size} bytes"
        measured(title, clients(bootstrap, stretch), len(messages), given.rounds)
        table = pa.Table.from_pylist(some)
        parts = [
            table.slice(first, ROWS_OF_A_BATCH) for first in range(0, len(some), ROWS_OF_A_BATCH)
        ]
        create_topic(bootstrap, batches, 1)
        publish(bootstrap, batches, [(ipc_message(each), AT, 0) for each in parts] * 10)
        readers: Variants = {"forebay": lambda: micro_batches(bootstrap, batches, list(COLUMNS))}
        title = f"Arrow micro-batches of {ROWS_OF_A_BATCH} rows to chunks, a row"
        measured(title, readers, 10 * len(some), given.rounds)


if __name__ == "__main__":
    main()
