"""Messages that are one row each, written by a schema: what `avro` and `protobuf` share.

A reader stands for one schema. It makes an object of each message alone, so that one that cannot be
read costs its neighbours nothing; columns are made of many objects at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.config.yaml.spelling import nearest
from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.common.values.casting import Fitted, fit
from forebay.datatasks.sources.formats.decoder import (
    NO_VALUE,
    OUT_OF_MEMORY,
    REASON_MAX,
    Decoded,
    Decoder,
    in_memory,
)
from forebay.errors import ConfigError

# A framed message begins as clients of Confluent's schema registry write it: a zero byte, and the
# id of its schema in four bytes, big-endian ("Wire format" in its documentation). No registry is
# asked: ids are looked up in what the source declares.

FILE_BYTES_MAX = 16 << 20
_HEADER_BYTES = 5
_SHOWN_IDS = 8


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"schema file {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"schema file {path} has more than {FILE_BYTES_MAX:,} bytes")
    return content


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def unframed(value: bytes) -> tuple[int, bytes]:
    """The id of a message's schema, and its payload. ValueError without the framing."""
    if len(value) < _HEADER_BYTES or value[0]:
        raise ValueError("it does not begin with a zero byte and the id of its schema")
    return int.from_bytes(value[1:_HEADER_BYTES], "big"), value[_HEADER_BYTES:]


class SchemaError(ValueError):
    """A schema that is none, or whose messages or columns are not read."""


class RowReader(ABC):
    """Reads messages of one schema.

    fields: what each of its columns is, by name.
    fixed_bytes, bytes_each: the most that a message takes as objects of Python: any, and for each
        byte of it.
    problem: why the wanted columns cannot be read of any message; empty where they can.
    """

    fixed_bytes: float
    bytes_each: float

    def __init__(self, fields: Mapping[str, Any], declared: Mapping[str, ColumnType]) -> None:
        self.fields, self._declared = fields, declared
        self.problem = ""
        self._columns: list[tuple[str, pa.DataType]] = []

    def want(self, columns: Sequence[str]) -> None:
        """Say which columns `arrays` makes, before anything is read."""
        try:
            self._columns = [(name, self._stored_type(name)) for name in columns]
        except SchemaError as error:
            self.problem = str(error)

    def _stored_type(self, name: str) -> pa.DataType:
        if name not in self.fields:
            guess = nearest(name, self.fields)
            way_out = f"did you mean {guess!r}?" if guess else f"it has {', '.join(self.fields)}"
            raise SchemaError(f"there is no column {name!r}: {way_out[:200]}")
        field, declared = self.fields[name], self._declared[name]
        stored = self.stored_type(field, declared)
        if stored is None:
            raise SchemaError(
                f"column {name!r} is stored as {self.shown(field)}, which cannot be read as "
                f"{declared.value}"
            )
        return stored

    def described(self) -> dict[str, str]:
        """Every column and its type, as people write it."""
        return {name: self.shown(field) for name, field in self.fields.items()}

    @abstractmethod
    def stored_type(self, field: Any, declared: ColumnType) -> pa.DataType | None:  # noqa: ANN401
        """What a column is stored as; None where it cannot be read as declared."""

    @abstractmethod
    def shown(self, field: Any) -> str:  # noqa: ANN401
        """A column's type as people write it."""

    @abstractmethod
    def read(self, payload: bytes) -> Any:  # noqa: ANN401 - what the format's library makes
        """A message. ValueError says why it is none."""

    @abstractmethod
    def arrays(self, rows: Sequence[Any]) -> list[pa.Array]:
        """The wanted columns as stored, of types that `fit` casts to the declared ones."""


class WrittenDecoder(Decoder):
    """Reads messages of one schema, or of several that their ids tell apart."""

    one_row: ClassVar[bool] = True

    def prepare(self) -> None:
        contents = {number: _content(path) for number, path in self.written.files.items()}
        self._readers = {number: self._reader(number, each) for number, each in contents.items()}
        # A schema from before a column was added knows nothing of it: there it is null.
        known = frozenset[str]().union(*(reader.fields for reader in self._readers.values()))
        self._wanted: dict[int | None, list[str]] = {}
        for number, reader in self._readers.items():
            wanted = [name for name in self.columns if name in reader.fields or name not in known]
            self._wanted[number] = wanted
            reader.want(wanted)

    @abstractmethod
    def reader(self, content: bytes) -> RowReader:
        """The reader of a schema. SchemaError where it is none."""

    def _reader(self, number: int | None, content: bytes) -> RowReader:
        try:
            return self.reader(content)
        except SchemaError as error:
            raise ConfigError(f"schema file {self.written.files[number]}: {error}") from None

    def decode(self, values: Sequence[bytes | None]) -> Iterator[Decoded]:
        bad: dict[int, str] = {}
        found: dict[int | None, dict[int, Any]] = {number: {} for number in self._readers}
        for number, value in enumerate(values):
            try:
                if value is None:
                    bad[number] = NO_VALUE
                else:
                    schema_id, row = self._row(value)
                    found[schema_id][number] = row
            except ValueError as error:
                bad[number] = str(error)[:REASON_MAX]
            except MemoryError:
                bad[number] = OUT_OF_MEMORY
        parts = [
            (in_memory(partial(self._batch, key), rows, bad), rows) for key, rows in found.items()
        ]
        yield self._joined([part for part in parts if part[1]], len(values), bad)

    def described(self, value: bytes) -> dict[str, str]:
        try:
            schema_id, _ = self._row(value)
        except (ValueError, MemoryError):
            return {}
        return self._readers[schema_id].described()

    def _row(self, value: bytes) -> tuple[int | None, Any]:
        """Which schema a message is of, and what it holds. ValueError says why it is not read."""
        if refusal := self.limits.stored_refusal(len(value)):
            raise ValueError(refusal)
        schema_id, payload = unframed(value) if self.written.is_framed else (None, value)
        reader = self._readers.get(schema_id)
        if reader is None:
            known = ", ".join(map(str, list(self._readers)[:_SHOWN_IDS]))
            raise ValueError(f"its schema has id {schema_id}, and schema_ids has {known}")
        if reader.problem:
            raise ValueError(reader.problem)
        taken = reader.fixed_bytes + len(payload) * reader.bytes_each
        if refusal := self.limits.refusal(1, int(taken)):
            raise ValueError(refusal)
        return schema_id, reader.read(payload)

    def _batch(self, key: int | None, rows: dict[int, Any], _bad: dict[int, str]) -> Fitted:
        if not self.columns or not rows:
            return Fitted(pa.RecordBatch.from_pylist([], schema=self.schema))
        arrays = self._readers[key].arrays(list(rows.values()))
        stored = dict(zip(self._wanted[key], arrays, strict=True))
        columns = [
            stored[field.name] if field.name in stored else pa.nulls(len(rows), field.type)
            for field in self.schema
        ]
        return fit(
            pa.RecordBatch.from_arrays(columns, names=self.columns), self.columns, self.declared
        )

    def _joined(
        self, parts: Sequence[tuple[Fitted, dict[int, Any]]], end: int, bad: dict[int, str]
    ) -> Decoded:
        """The rows of all schemas in the order of their messages."""
        numbers = np.array([number for _, rows in parts for number in rows], np.int64)
        order = np.argsort(numbers)
        places = np.argsort(order)
        bad_rows: dict[int, str] = {}
        first = 0
        for fitted, rows in parts:
            bad_rows |= {int(places[first + n]): reason for n, reason in fitted.bad.items()}
            first += len(rows)
        if not self.columns:
            batch = without_columns(len(numbers))
        elif len(parts) == 1:
            batch = parts[0][0].batch
        else:
            empty = pa.RecordBatch.from_pylist([], schema=self.schema)
            joined = pa.concat_batches([empty, *(fitted.batch for fitted, _ in parts)])
            batch = joined.take(pa.array(order))
        rows_of = np.zeros_like(numbers)
        return Decoded(
            batch, numbers[order], rows_of, (end, 0), bad, dict(sorted(bad_rows.items()))
        )
