"""Format `protobuf`: each message is one message of a type that a descriptor set declares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from forebay.config.sources import ColumnType
from forebay.datatasks.sources.formats.protobuf_schema import MessageType, SchemaError, shown
from forebay.datatasks.sources.formats.written_rows import RowReader, WrittenDecoder
from forebay.errors import ConfigError

_INT64 = range(-(2**63), 2**63)


class ProtobufReader(RowReader):
    """Reads messages of one type with the library's own parser in C.

    Two bytes may be a field that the type has not, of which the library makes an object.
    """

    fixed_bytes = 1024.0
    bytes_each = 80.0

    def __init__(
        self,
        kind: MessageType,
        declared: dict[str, ColumnType],
        *,
        is_framed: bool,
    ) -> None:
        """Nothing is read yet."""
        self._kind, self._declared = kind, declared
        self.names = frozenset(kind.fields)
        self._prefixes = kind.indexes if is_framed else (b"",)
        self._parse = kind.read_class.FromString
        self.problem = ""
        self._columns: list[tuple[str, pa.DataType]] = []
        self._instants: list[str] = []

    def want(self, columns: Sequence[str]) -> None:
        """See `RowReader.want`."""
        stored_type, declared = self._kind.stored_type, self._declared
        try:
            self._columns = [(name, stored_type(name, declared[name])) for name in columns]
        except SchemaError as error:
            self.problem = str(error)
        fields = self._kind.fields
        self._instants = [name for name, _ in self._columns if fields[name].message_type]

    def read(self, payload: bytes) -> Any:  # noqa: ANN401
        """See `RowReader.read`."""
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
        """See `RowReader.arrays`."""
        return [self._array(name, stored, rows) for name, stored in self._columns]

    def described(self) -> dict[str, str]:
        """See `RowReader.described`."""
        return {name: shown(field) for name, field in self._kind.fields.items()}

    def _array(self, name: str, stored: pa.DataType, rows: Sequence[Any]) -> pa.Array:
        values = list(map(attrgetter(name), rows))
        field = self._kind.fields[name]
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
    """Reads protobuf messages."""

    def reader(self, content: bytes, path: Path) -> RowReader:
        """See `WrittenDecoder.reader`."""
        try:
            kind = MessageType(content, self._written.message_type)
        except SchemaError as error:
            raise ConfigError(f"schema file {path}: {error}") from None
        framed = self._written.is_framed
        return ProtobufReader(kind, dict(self.declared), is_framed=framed)


def _lists(values: list[Any], stored: pa.ListType) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=offsets[1:])
    flat = pa.array(list(chain.from_iterable(values)), stored.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


def _microseconds(instant: Any) -> int:  # noqa: ANN401
    """Of a Timestamp."""
    return int(instant.seconds * 1_000_000 + instant.nanos // 1000)


def _require_instant(name: str, found: Any) -> None:  # noqa: ANN401
    if _microseconds(found) not in _INT64 or not 0 <= found.nanos < 1_000_000_000:
        raise ValueError(
            f"column {name!r} as timestamp: {found.seconds} s and {found.nanos} ns since 1970"
        )
