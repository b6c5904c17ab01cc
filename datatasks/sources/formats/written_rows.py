"""Messages that are one row each, written by a schema: what `avro` and `protobuf` share.

A reader stands for one schema. It makes an object of each message alone, so that one that cannot be
read costs its neighbours nothing; columns are made of many objects at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.common.values.casting import Fitted, fit
from forebay.datatasks.sources.formats.decoder import (
    NO_VALUE,
    OUT_OF_MEMORY,
    REASON_MAX,
    USUAL_LIMITS,
    Decoded,
    Decoder,
    MessageLimits,
)
from forebay.errors import ConfigError

# A framed message begins as clients of Confluent's schema registry write it: a zero byte, and the
# id of its schema in four bytes, big-endian ("Wire format" in its documentation). No registry is
# asked: ids are looked up in what the source declares.

FILE_BYTES_MAX = 16 << 20
_HEADER_BYTES = 5


@dataclass(frozen=True)
class Written:
    """What the messages of a source are written in.

    files: schema id to file; one under None where messages are not framed.
    message_type: full name of the message type in each of these files; empty for Avro.
    """

    files: Mapping[int | None, Path]
    message_type: str = ""

    @property
    def is_framed(self) -> bool:
        """Whether messages begin with the id of their schema."""
        return None not in self.files

    def contents(self) -> dict[int | None, bytes]:
        """The files.

        Raises:
            ConfigError: for one that cannot be read, or is too large to be a schema.
        """
        return {number: _content(path) for number, path in self.files.items()}


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
    """The id of a message's schema, and its payload.

    Raises:
        ValueError: for a message without the framing.
    """
    if len(value) < _HEADER_BYTES or value[0]:
        raise ValueError("it does not begin with a zero byte and the id of its schema")
    return int.from_bytes(value[1:_HEADER_BYTES], "big"), value[_HEADER_BYTES:]


_SHOWN_IDS = 8


class RowReader:
    """Reads messages of one schema.

    fixed_bytes, bytes_each: the most that a message takes as objects of Python: any, and for each
        byte of it.
    names: of its columns.
    problem: why the wanted columns cannot be read of any message; empty where they can.
    """

    fixed_bytes: float
    bytes_each: float
    names: frozenset[str]
    problem: str

    @abstractmethod
    def want(self, columns: Sequence[str]) -> None:
        """Say which columns `arrays` makes, before anything is read."""

    @abstractmethod
    def read(self, payload: bytes) -> Any:  # noqa: ANN401 - what the format's library makes
        """A message. ValueError says why it is none."""

    @abstractmethod
    def arrays(self, rows: Sequence[Any]) -> list[pa.Array]:
        """The wanted columns as stored, of types that `fit` casts to the declared ones."""

    @abstractmethod
    def described(self) -> dict[str, str]:
        """Every column and its type, as people write it."""


class WrittenDecoder(Decoder):
    """Reads messages of one schema, or of several that their ids tell apart."""

    one_row: ClassVar[bool] = True

    def __init__(
        self,
        columns: Sequence[str],
        declared: Mapping[str, ColumnType],
        limits: MessageLimits = USUAL_LIMITS,
        written: Written | None = None,
    ) -> None:
        """Decode `columns`, whose types are in `declared`.

        Raises:
            ConfigError: for a schema file that cannot be read, or is none.
        """
        super().__init__(columns, declared, limits)
        self._written = written or Written({})
        self._readers = {
            number: self.reader(content, self._written.files[number])
            for number, content in self._written.contents().items()
        }
        # A schema from before a column was added knows nothing of it: there it is null.
        known = frozenset[str]().union(*(reader.names for reader in self._readers.values()))
        self._wanted: dict[int | None, list[str]] = {}
        for number, reader in self._readers.items():
            wanted = [name for name in self.columns if name in reader.names or name not in known]
            self._wanted[number] = wanted
            reader.want(wanted)

    @abstractmethod
    def reader(self, content: bytes, path: Any) -> RowReader:  # noqa: ANN401
        """The reader of a schema file. ConfigError where it is none."""

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
        parts = [(self._fitted(key, rows, bad), rows) for key, rows in found.items()]
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
        schema_id, payload = unframed(value) if self._written.is_framed else (None, value)
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

    def _fitted(self, key: int | None, rows: dict[int, Any], bad: dict[int, str]) -> Fitted:
        """Rows in declared types. Those that memory does not even hold alone are bad messages."""
        try:
            return self._batch(key, rows)
        except MemoryError:
            for number in list(rows):
                try:
                    self._batch(key, {number: rows[number]})
                except MemoryError:
                    bad[number] = OUT_OF_MEMORY
                    del rows[number]
        return self._batch(key, rows)

    def _batch(self, key: int | None, rows: dict[int, Any]) -> Fitted:
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
