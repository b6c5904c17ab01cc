"""Format `protobuf`: each message is one message of a type that a descriptor set declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.config.yaml.spelling import nearest
from forebay.datatasks.sources.formats.decoder import Written
from forebay.datatasks.sources.formats.written_rows import RowReader, SchemaError, WrittenDecoder

# That one has the same fields, but texts and messages stay bytes: a few bytes of a message inside
# of another one would be an object with all of its fields, and whether texts are UTF-8 Arrow says
# for many at a time (protobuf.dev/programming-guides/encoding).

INSTANT = "google.protobuf.Timestamp"
_F = FieldDescriptor
_GROUP = _F.TYPE_GROUP
_WIRE_TYPES: Mapping[int, int] = {
    **dict.fromkeys((_F.TYPE_DOUBLE, _F.TYPE_FIXED64, _F.TYPE_SFIXED64), 1),
    **dict.fromkeys((_F.TYPE_FLOAT, _F.TYPE_FIXED32, _F.TYPE_SFIXED32), 5),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE), 2),
}
_ARROW_TYPES: Mapping[int, pa.DataType] = {
    **dict.fromkeys((_F.CPPTYPE_INT32, _F.CPPTYPE_INT64, _F.CPPTYPE_ENUM), pa.int64()),
    **dict.fromkeys((_F.CPPTYPE_UINT32, _F.CPPTYPE_UINT64), pa.uint64()),
    **dict.fromkeys((_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE), pa.float64()),
    _F.CPPTYPE_BOOL: pa.bool_(),
    _F.CPPTYPE_STRING: pa.binary(),
}
_FITS: Mapping[ColumnType, frozenset[pa.DataType]] = {
    ColumnType.STRING: frozenset({pa.binary()}),
    ColumnType.INT: frozenset({pa.int64(), pa.uint64()}),
    ColumnType.FLOAT: frozenset({pa.int64(), pa.uint64(), pa.float64()}),
    ColumnType.BOOL: frozenset({pa.bool_()}),
    ColumnType.TIMESTAMP: frozenset({pa.int64(), pa.binary()}),
}


class MessageType:
    """One message type.

    fields: its own, by name. write_class: its class. read_class: the one that rows are read by.
    indexes: where the type is in its file, as the framing of schema registries writes it.
    """

    def __init__(self, content: bytes, name: str) -> None:
        """SchemaError for no descriptor set, or one without such a message type."""
        found = _found(content, name)
        self.fields: dict[str, FieldDescriptor] = {each.name: each for each in found.fields}
        self.write_class: Any = message_factory.GetMessageClass(found)
        self.read_class: Any = _read_class(found)
        self.indexes = _indexes(found)
        self._wire_types = {
            each.number: _WIRE_TYPES.get(each.type, 0)
            for each in found.fields
            if each.type != _GROUP
        }
        self._names = {each.number: each.name for each in found.fields}

    def fault(self, number: int, wire_type: int) -> str:
        """What is wrong with a field that reading took for an unknown one; empty for those."""
        wanted = self._wire_types.get(number, wire_type)
        if wanted == wire_type:
            return ""
        return f"field {self._names[number]!r} has wire type {wire_type} instead of {wanted}"


def _scalar(field: FieldDescriptor, declared: ColumnType) -> pa.DataType | None:
    """What single values are stored as; None where they cannot be read as declared."""
    if field.message_type is not None:
        fits = _is_instant(field) and declared is ColumnType.TIMESTAMP
        return pa.timestamp("us", tz="UTC") if fits else None
    stored = _ARROW_TYPES[field.cpp_type]
    if field.type == _F.TYPE_BYTES or stored not in _FITS[declared]:
        return None
    if declared is ColumnType.TIMESTAMP:
        return pa.timestamp("ms", tz="UTC") if stored == pa.int64() else pa.string()
    return stored


def _is_instant(field: FieldDescriptor) -> bool:
    named = field.message_type
    return named is not None and named.full_name == INSTANT and not field.is_repeated


def _found(content: bytes, name: str) -> Descriptor:
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(content).file
        for file in files:
            pool.Add(file)
    except (DecodeError, TypeError) as error:
        raise SchemaError(
            f"it is not a descriptor set (protoc --include_imports): {error}"
        ) from None
    names = [
        f"{file.package}.{each.name}".lstrip(".") for file in files for each in file.message_type
    ]
    try:
        return pool.FindMessageTypeByName(name)
    except (KeyError, TypeError) as error:
        guess = nearest(name, names)
        way_out = f"did you mean {guess!r}?" if guess else f"it has {', '.join(names)[:200]}"
        raise SchemaError(f"there is no message type {name!r}: {way_out}") from error


def _read_class(found: Descriptor) -> Any:  # noqa: ANN401
    file = descriptor_pb2.FileDescriptorProto(name="forebay/row.proto", syntax="proto2")
    instant = file.message_type.add(name="Instant")
    instant.field.add(name="seconds", number=1, type=_F.TYPE_INT64, label=_F.LABEL_OPTIONAL)
    instant.field.add(name="nanos", number=2, type=_F.TYPE_INT32, label=_F.LABEL_OPTIONAL)
    row = file.message_type.add(name="Row")
    for each in found.oneofs:
        row.oneof_decl.add(name=f"one_of_{each.name}")
    for field in found.fields:
        if field.type != _GROUP:
            _copy_field(field, row.field.add())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))


def _copy_field(field: FieldDescriptor, copy: Any) -> None:  # noqa: ANN401
    copy.name, copy.number = field.name, field.number
    copy.label = _F.LABEL_REPEATED if field.is_repeated else _F.LABEL_OPTIONAL
    copy.type = field.type
    if field.containing_oneof is not None:
        copy.oneof_index = field.containing_oneof.index
    if field.type == _F.TYPE_ENUM:
        copy.type = _F.TYPE_INT32
    elif _is_instant(field):
        copy.type, copy.type_name = _F.TYPE_MESSAGE, ".Instant"
    elif field.type in {_F.TYPE_STRING, _F.TYPE_MESSAGE}:
        copy.type = _F.TYPE_BYTES


def _indexes(found: Descriptor) -> tuple[bytes, ...]:
    """The ways to write the place of a type in its file: how many numbers, and these, zigzag."""
    file = descriptor_pb2.FileDescriptorProto()
    found.file.CopyToProto(file)
    path: list[int] = []
    types = file.message_type
    for name in found.full_name[len(file.package) :].lstrip(".").split("."):
        path.append([each.name for each in types].index(name))
        types = types[path[-1]].nested_type
    written = b"".join(_varint(2 * each) for each in [len(path), *path])
    return (b"\0", written) if path == [0] else (written,)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


_INT64 = range(-(2**63), 2**63)


class ProtobufReader(RowReader):
    """Reads messages of one type with the library's own parser in C.

    Two bytes may be a field that the type has not, of which the library makes an object.
    """

    fixed_bytes = 1024.0
    bytes_each = 80.0

    def __init__(
        self, content: bytes, declared: Mapping[str, ColumnType], written: Written
    ) -> None:
        self._kind = kind = MessageType(content, written.message_type)
        super().__init__(kind.fields, declared)
        self._prefixes = kind.indexes if written.is_framed else (b"",)
        self._parse = kind.read_class.FromString
        self._instants: list[str] = []

    def want(self, columns: Sequence[str]) -> None:
        super().want(columns)
        self._instants = [name for name, _ in self._columns if self.fields[name].message_type]

    def stored_type(self, field: FieldDescriptor, declared: ColumnType) -> pa.DataType | None:
        stored = _scalar(field, LIST_ITEMS.get(declared, declared))
        if stored is None or field.is_repeated != (declared in LIST_ITEMS):
            return None
        return pa.list_(stored) if field.is_repeated else stored

    def shown(self, field: FieldDescriptor) -> str:
        names = {value: name[5:].lower() for name, value in vars(_F).items() if name[:5] == "TYPE_"}
        named = field.message_type or field.enum_type
        name = named.full_name if named else names[field.type]
        return f"repeated {name}" if field.is_repeated else str(name)

    def read(self, payload: bytes) -> Any:  # noqa: ANN401
        prefix = next(filter(payload.startswith, self._prefixes), None)
        if prefix is None:
            raise ValueError("its framing names another message type of its schema's file")
        try:
            found = self._parse(payload[len(prefix) :])
        except DecodeError as error:
            raise ValueError(f"not a message of its type: {error}") from None
        for name in self._instants:
            _require_instant(name, getattr(found, name))
        for each in UnknownFieldSet(found):
            if fault := self._kind.fault(each.field_number, each.wire_type):
                raise ValueError(fault)
        return found

    def arrays(self, rows: Sequence[Any]) -> list[pa.Array]:
        return [self._array(name, stored, rows) for name, stored in self._columns]

    def _array(self, name: str, stored: pa.DataType, rows: Sequence[Any]) -> pa.Array:
        values = list(map(attrgetter(name), rows))
        field = self.fields[name]
        if pat.is_list(stored):
            return _lists(values, stored)
        if field.message_type is not None:
            values = [_microseconds(each) for each in values]
        elif pat.is_string(stored):  # of an instant: what is no UTF-8 is none
            values = [each.decode(errors="replace") for each in values]
        if field.has_presence:
            values = [
                value if row.HasField(name) else None
                for value, row in zip(values, rows, strict=True)
            ]
        return pa.array(values, stored)


class ProtobufDecoder(WrittenDecoder):
    def reader(self, content: bytes) -> RowReader:
        return ProtobufReader(content, self.declared, self.written)


def _lists(values: list[Any], stored: pa.ListType) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=offsets[1:])
    flat = pa.array(list(chain.from_iterable(values)), stored.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


def _microseconds(instant: Any) -> int:  # noqa: ANN401
    return int(instant.seconds * 1_000_000 + instant.nanos // 1000)


def _require_instant(name: str, found: Any) -> None:  # noqa: ANN401
    if _microseconds(found) not in _INT64 or not 0 <= found.nanos < 1_000_000_000:
        raise ValueError(
            f"column {name!r} as timestamp: {found.seconds} s and {found.nanos} ns since 1970"
        )
