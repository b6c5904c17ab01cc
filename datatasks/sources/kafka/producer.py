"""Publishes rows to Kafka as Forebay's sources read them: Arrow micro-batches, or single rows.

For the log kind see `forebay.datatasks.sources.log.writer.LogWriter`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from forebay.datatasks.sources.formats.written_rows import framed
from forebay.datatasks.sources.kafka.client import Cluster, kafka_library, new_client, wait_for_port
from forebay.errors import InfrastructureError
from forebay.system.extras import require_extra
from forebay.system.instants import to_us

Row = Mapping[str, Any]
RowWriter = Callable[[Row], bytes]


def ipc_message(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Rows as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue().to_pybytes())


def json_message(row: Row) -> bytes:
    """A row as JSON; instants become ISO 8601 texts."""
    return json.dumps(row, default=_iso, ensure_ascii=False, separators=(",", ":")).encode()


def avro_writer(schema_file: Path, schema_id: int | None = None) -> RowWriter:
    """Writes rows as Avro records; instants where the schema has a timestamp's logical type.

    schema_id: what the messages are framed with; None for no framing.

    Raises:
        MissingExtraError: when the extra `avro` is not installed.
    """
    require_extra("avro")
    import fastavro

    schema = fastavro.parse_schema(json.loads(schema_file.read_bytes()))

    def write(row: Row) -> bytes:
        file = BytesIO()
        fastavro.schemaless_writer(file, schema, row)
        return file.getvalue() if schema_id is None else framed(schema_id, file.getvalue())

    return write


def protobuf_writer(
    schema_file: Path, message_type: str, schema_id: int | None = None
) -> RowWriter:
    """Writes rows as messages of a type of a descriptor set; a null leaves its field out.

    Instants are Timestamps, or milliseconds since 1970 where a field is a number.
    schema_id: what the messages are framed with; None for no framing.

    Raises:
        MissingExtraError: when the extra `protobuf` is not installed.
        ConfigError: when the file has no such type.
    """
    require_extra("protobuf")
    from forebay.datatasks.sources.formats.protobuf_rows import MessageType

    kind = MessageType(schema_file.read_bytes(), message_type)

    def write(row: Row) -> bytes:
        message = kind.write_class()
        for name, value in row.items():
            _set_field(message, name, value)
        payload: bytes = message.SerializeToString()
        if schema_id is None:
            return payload
        return framed(schema_id, kind.indexes[0] + payload)

    return write


def _set_field(message: Any, name: str, value: Any) -> None:  # noqa: ANN401
    if value is None:
        return
    if isinstance(value, list):
        getattr(message, name).extend(value)
    elif not isinstance(value, datetime):
        setattr(message, name, value)
    elif message.DESCRIPTOR.fields_by_name[name].message_type is None:
        setattr(message, name, to_us(value) // 1000)
    else:
        instant = getattr(message, name)
        instant.seconds, microseconds = divmod(to_us(value), 1_000_000)
        instant.nanos = microseconds * 1000
        instant.SetInParent()


def _iso(value: object) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


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
    bootstrap: str, topic: str, batches: Iterable[tuple[pa.RecordBatch | pa.Table, datetime, int]]
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
    bootstrap: str, topic: str, rows: Iterable[tuple[Row, datetime, int]], writer: RowWriter
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
