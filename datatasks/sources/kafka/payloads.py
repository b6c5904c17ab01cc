"""Rows as messages of each format, as Forebay's sources read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from forebay.datatasks.sources.formats.written import framed
from forebay.system.extras import require_extra
from forebay.system.instants import to_us

Row = Mapping[str, Any]


class RowWriter(Protocol):
    """Makes a message of a row."""

    def __call__(self, row: Row) -> bytes:
        """The message."""


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
    from forebay.datatasks.sources.formats.protobuf_schema import MessageType

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
