"""Format `avro`: each message is one record, as its schema's file says; no container file."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Sequence
from io import BytesIO
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.types as pat

from forebay.config.sources import ColumnType
from forebay.datatasks.sources.formats.avro_schema import AvroSchema, SchemaError
from forebay.datatasks.sources.formats.written_rows import RowReader, WrittenDecoder
from forebay.errors import ConfigError

_FAULTS = (
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    attrgetter("ReadError")(importlib.import_module("fastavro._read")),  # it has no public name
    TypeError,
    UnicodeDecodeError,
    struct.error,
)


class AvroReader(RowReader):
    """Reads records of one schema with fastavro."""

    def __init__(self, schema: AvroSchema, declared: dict[str, ColumnType]) -> None:
        """Nothing is read yet."""
        self._schema, self._declared = schema, declared
        self.names = frozenset(schema.fields)
        self.fixed_bytes, self.bytes_each = schema.cost.fixed, schema.cost.each
        self.problem = ""
        self._columns: list[tuple[str, pa.DataType]] = []

    def want(self, columns: Sequence[str]) -> None:
        """See `RowReader.want`."""
        stored_type, declared = self._schema.stored_type, self._declared
        try:
            self._columns = [(name, stored_type(name, declared[name])) for name in columns]
        except SchemaError as error:
            self.problem = str(error)

    def read(self, payload: bytes) -> Any:  # noqa: ANN401
        """See `RowReader.read`."""
        # One byte more, since not every reader of a value sees that the message ends in it.
        file = BytesIO(payload + b"\0")
        try:
            found = fastavro.schemaless_reader(file, self._schema.plain, None)
        except _FAULTS as error:
            raise ValueError(f"not a record of its schema: {_said(error)}") from None
        left = len(payload) - file.tell()
        if left:
            more = f"{left:,} bytes are left after it" if left > 0 else "it ends too early"
            raise ValueError(f"not a record of its schema: {more}")
        return found

    def arrays(self, rows: Sequence[Any]) -> list[pa.Array]:
        """See `RowReader.arrays`."""
        return [_array(list(map(itemgetter(name), rows)), stored) for name, stored in self._columns]

    def described(self) -> dict[str, str]:
        """See `RowReader.described`."""
        return {name: self._schema.shown(node) for name, node in self._schema.fields.items()}


class AvroDecoder(WrittenDecoder):
    """Reads Avro records."""

    def reader(self, content: bytes, path: Path) -> RowReader:
        """See `WrittenDecoder.reader`."""
        try:
            return AvroReader(AvroSchema(content), dict(self.declared))
        except SchemaError as error:
            raise ConfigError(f"schema file {path}: {error}") from None


def _array(values: list[Any], stored: pa.DataType) -> pa.Array:
    if pat.is_list(stored) and pat.is_floating(stored.value_type):
        values = [None if value is None else _floats(value) for value in values]
    elif pat.is_floating(stored):
        values = _floats(values)
    return pa.array(values, stored)


def _floats(values: list[Any]) -> list[float | None]:
    """Integers of a union too, which Arrow takes only where they are exact."""
    return [None if value is None else float(value) for value in values]


def _said(error: BaseException) -> str:
    # fastavro names the object that it reads from, with its address in memory.
    said = str(error).partition(" from <")[0]
    return said or ("it ends too early" if isinstance(error, EOFError) else repr(error))
