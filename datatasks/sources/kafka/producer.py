"""Publishes rows to Kafka as Forebay's sources read them: Arrow micro-batches, or single rows.

For the log kind see `forebay.datatasks.sources.log.writer.LogWriter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa

from forebay.datatasks.sources.kafka.client import Cluster, kafka_library, new_client, wait_for_port
from forebay.datatasks.sources.kafka.payloads import (
    Row,
    RowWriter,
    avro_writer,
    ipc_message,
    json_message,
    protobuf_writer,
)
from forebay.errors import InfrastructureError
from forebay.system.instants import to_us

__all__ = [
    "avro_writer",
    "create_topic",
    "ipc_message",
    "json_message",
    "protobuf_writer",
    "publish",
    "publish_batches",
    "publish_rows",
    "publish_rows_json",
]

FLUSH_SECONDS = 60.0
# Records that carry stamps of years ago are otherwise deleted as soon as they are written.
KEEP_ALL: Mapping[str, str] = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
}


def create_topic(
    bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str] | None = None
) -> None:
    """Create a topic that keeps every record; one that exists is left as it is.

    Raises:
        InfrastructureError: when the broker does not answer.
    """
    with Cluster(bootstrap) as cluster:
        cluster.create_topic(topic, partitions, {**KEEP_ALL, **(settings or {})})


def publish_batches(
    bootstrap: str,
    topic: str,
    batches: Iterable[tuple[pa.RecordBatch | pa.Table, datetime, int]],
) -> int:
    """Send each (rows, publication time, partition) as one `arrow-ipc` message.

    Returns:
        Messages sent, all of them acknowledged.

    Raises:
        InfrastructureError: when a message is not acknowledged.
    """
    messages = ((ipc_message(rows), at, partition) for rows, at, partition in batches)
    return publish(bootstrap, topic, messages)


def publish_rows(
    bootstrap: str,
    topic: str,
    rows: Iterable[tuple[Row, datetime, int]],
    writer: RowWriter,
) -> int:
    """Send each (row, publication time, partition) as one message.

    writer: what makes a message of a row: `json_message`, or what `avro_writer` and
    `protobuf_writer` return.
    """
    messages = ((writer(row), at, partition) for row, at, partition in rows)
    return publish(bootstrap, topic, messages)


def publish_rows_json(bootstrap: str, topic: str, rows: Iterable[tuple[Row, datetime, int]]) -> int:
    """Send each (row, publication time, partition) as one `json` message."""
    return publish_rows(bootstrap, topic, rows, json_message)


def publish(
    bootstrap: str,
    topic: str,
    messages: Iterable[tuple[bytes | None, datetime, int]],
    *,
    compression: str | None = None,
) -> int:
    """Send ready messages with their record timestamps and wait for every acknowledgement."""
    errors = kafka_library().errors
    wait_for_port(bootstrap)
    producer = new_client(
        "KafkaProducer",
        bootstrap,
        {},
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
        compression_type=compression,
        max_request_size=32 << 20,
        batch_size=256 << 10,
    )
    try:
        sent = [
            producer.send(
                topic,
                value=value,
                key=b"" if value is None else None,  # a tombstone has to have one
                partition=partition,
                timestamp_ms=to_us(at) // 1000,
            )
            for value, at, partition in messages
        ]
        producer.flush(FLUSH_SECONDS)
        for each in sent:
            each.get(0)
    except errors.KafkaError as error:
        raise InfrastructureError(
            f"Kafka at {bootstrap}: {topic} was not written: {error}"
        ) from error
    finally:
        producer.close()
    return len(sent)
