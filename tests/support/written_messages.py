"""Schema files of Avro and protobuf for declared columns, made without a compiler."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor import FieldDescriptor as F

from forebay.config.specs.sources import LIST_ITEMS, ColumnType

_AVRO: Mapping[ColumnType, Any] = {
    ColumnType.STRING: "string",
    ColumnType.INT: "long",
    ColumnType.FLOAT: "double",
    ColumnType.BOOL: "boolean",
    ColumnType.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
}
_PROTOBUF: Mapping[ColumnType, int] = {
    ColumnType.STRING: F.TYPE_STRING,
    ColumnType.INT: F.TYPE_INT64,
    ColumnType.FLOAT: F.TYPE_DOUBLE,
    ColumnType.BOOL: F.TYPE_BOOL,
    ColumnType.TIMESTAMP: F.TYPE_MESSAGE,
}
MESSAGE_TYPE = "shop.Row"


def avro_type(declared: ColumnType) -> Any:
    """A type that holds a declared one and null."""
    if declared in LIST_ITEMS:
        return ["null", {"type": "array", "items": ["null", _AVRO[LIST_ITEMS[declared]]]}]
    return ["null", _AVRO[declared]]


def avro_schema(columns: Mapping[str, ColumnType]) -> dict[str, Any]:
    fields = [{"name": name, "type": avro_type(each)} for name, each in columns.items()]
    return {"type": "record", "name": "shop.Row", "fields": fields}


def avro_file(path: Path, schema: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(schema))
    return path


def protobuf_fields(columns: Mapping[str, ColumnType]) -> list[dict[str, Any]]:
    """Fields of proto3 with presence, numbered from 1."""
    found = []
    for number, (name, declared) in enumerate(columns.items(), 1):
        kind = _PROTOBUF[LIST_ITEMS.get(declared, declared)]
        field = {"name": name, "number": number, "type": kind, "repeated": declared in LIST_ITEMS}
        if kind == F.TYPE_MESSAGE:
            field["type_name"] = ".google.protobuf.Timestamp"
        found.append(field)
    return found


def descriptor_set(
    fields: Iterable[Mapping[str, Any]], before: int = 0, name: str = "Row"
) -> bytes:
    """A descriptor set of `shop.NAME`, which `before` other message types precede in its file."""
    found = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(found.file.add())
    file = found.file.add(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    for number in range(before):
        file.message_type.add(name=f"Other{number}")
    row = file.message_type.add(name=name)
    for field in fields:
        _add(row, **field)
    return found.SerializeToString()


def _add(row: Any, *, repeated: bool = False, has_presence: bool = True, **given: Any) -> None:
    label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
    field = row.field.add(label=label, **given)
    if has_presence and not repeated and field.type != F.TYPE_MESSAGE:
        field.proto3_optional = True
        field.oneof_index = len(row.oneof_decl)
        row.oneof_decl.add(name=f"_{field.name}")
