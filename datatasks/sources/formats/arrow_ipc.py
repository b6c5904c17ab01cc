"""Format `arrow-ipc`: each message is one Arrow IPC stream, a micro-batch of rows.

A message is a stranger's. Before Arrow decodes it, its metadata say what that takes, and only the
wanted columns are decoded; before anything is computed with their values, they are validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.common.values.casting import Fitted, fit
from forebay.datatasks.sources.formats.decoder import (
    NO_VALUE,
    OUT_OF_MEMORY,
    REASON_MAX,
    Decoded,
    Decoder,
)
from forebay.datatasks.sources.formats.ipc_metadata import (
    METADATA_ERRORS,
    SCHEMA,
    ColumnLayout,
    MetadataError,
    column_layouts,
    frames,
    require_little_endian,
)
from forebay.datatasks.sources.formats.ipc_sizes import (
    Size,
    StreamLayout,
    has_dictionaries,
    plain_bytes,
)
from forebay.datatasks.sources.formats.unchecked_types import stored_problem

# Decoded together, but for the last one of them; and cast together, since each bad row of those is
# an object.
_HELD_BYTES = 16 << 20
_PIECE_ROWS = 16_384
_ROW_BYTES = 32  # of the arrays that say where a row comes from
_SCHEMAS_KEPT = 64
_SCHEMA_BYTES_KEPT = 64 << 10
_SCHEMA_BYTES_SMALL = 2 << 10  # whatever its parts share, Arrow reads it in some 64 MiB
_ERRORS = (pa.ArrowException, OSError, ValueError, MemoryError, *METADATA_ERRORS)


class _Columns(NamedTuple):
    """What messages of one schema have. problem: why they cannot be read; empty when they can.

    wanted: indices of the columns. expands: whether they take more than their buffers, once each
        row has its own value.
    """

    layout: StreamLayout
    wanted: list[int]
    options: pa.ipc.IpcReadOptions
    expands: bool
    problem: str


class _Read(NamedTuple):
    """The wanted columns of one message as stored; None where no column is wanted."""

    table: pa.Table
    size: Size


@dataclass
class _Held:
    """Messages that are decoded together: those that could be read, and why the others cannot."""

    end: int
    reads: dict[int, _Read] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)

    def origins(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Message and row of every row of some messages: int64[2, N]."""
        counts = np.array([self.reads[number].size.rows for number in numbers], np.int64)
        starts = np.cumsum(counts) - counts
        rows = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)
        return np.stack([np.repeat(np.array(numbers, np.int64), counts), rows])


def _keep(known: dict[Any, _Columns], key: object, found: _Columns) -> None:
    if len(known) >= _SCHEMAS_KEPT:
        known.clear()
    known[key] = found


class ArrowDecoder(Decoder):
    """Reads IPC streams; messages may differ in their columns as long as the declared ones fit."""

    one_row: ClassVar[bool] = False

    def prepare(self) -> None:
        self._known: dict[bytes, _Columns] = {}
        self._alike: dict[tuple[int, pa.Schema], _Columns] = {}

    def decode(self, values: Sequence[bytes | None]) -> Iterator[Decoded]:
        end = 0
        while end < len(values) or not end:
            held = self._held(values, end)
            yield from self._pieces(held) if self.columns else [_counted(held)]
            if not values:
                return
            end = held.end

    def described(self, value: bytes) -> dict[str, str]:
        try:
            stored = _schema_of(value)
            first = next(frames(stored))
            column_layouts(first.header, first.version)
            schema = pa.ipc.read_schema(pa.py_buffer(stored))
        except _ERRORS:
            return {}
        return {each.name: str(each.type) for each in schema}

    def _held(self, values: Sequence[bytes | None], start: int) -> _Held:
        held = _Held(len(values))
        taken = 0
        for number in range(start, len(values)):
            found = self._read(values[number])
            if isinstance(found, str):
                held.bad[number] = found[:REASON_MAX]
                continue
            held.reads[number] = found
            taken += found.size.bytes
            if taken >= _HELD_BYTES:
                held.end = number + 1
                break
        return held

    def _read(self, value: bytes | None) -> _Read | str:
        if value is None:
            return NO_VALUE
        if refusal := self.limits.stored_refusal(len(value)):
            return refusal
        try:
            return self._opened(value)
        except MemoryError:
            return OUT_OF_MEMORY
        except _ERRORS as error:
            return f"not an Arrow IPC stream: {error}"

    def _opened(self, value: bytes) -> _Read | str:
        schema = _schema_of(value)
        found = self._columns(schema)
        if found.problem:
            return found.problem
        stream: bytes | bytearray = value
        if found.layout.has_others:
            stream = bytearray(value)
            found.layout.empty_others(frames(stream, len(schema)))
        rest = frames(stream, len(schema))
        rows, taken = found.layout.size(stream, rest, self.limits.bytes)
        size = Size(rows, taken + _ROW_BYTES * rows)
        refusal = self.limits.refusal(size.rows, size.bytes)
        if refusal or not self.columns:
            return refusal or _Read(None, size)
        with pa.ipc.open_stream(pa.py_buffer(stream), options=found.options) as reader:
            table = reader.read_all().select(self.columns)
        # Wrong offsets inside the message would otherwise be followed into foreign memory.
        table.validate(full=True)
        expanded = plain_bytes(table) if found.expands else 0
        size = Size(table.num_rows, max(size.bytes, expanded))
        if refusal := self.limits.refusal(*size):
            return refusal
        return _Read(table.replace_schema_metadata(None), size)

    def _columns(self, stored: bytes) -> _Columns:
        """What is known of a schema; producers write the same one again and again."""
        found = self._known.get(stored)
        if found is None:
            found = self._looked_at(stored)
            if len(stored) <= _SCHEMA_BYTES_KEPT:
                _keep(self._known, stored, found)
        return found

    def _looked_at(self, stored: bytes) -> _Columns:
        frame = next(frames(stored))
        require_little_endian(frame.header)
        # They say what Arrow takes to read the schema, which may be much more than it has bytes.
        is_small = len(stored) <= _SCHEMA_BYTES_SMALL
        layouts = [] if is_small else column_layouts(frame.header, frame.version)
        schema = pa.ipc.read_schema(pa.py_buffer(stored)).remove_metadata()
        # The same columns come with other metadata: pandas writes how many rows there are.
        key = (frame.version, schema)
        found = self._alike.get(key)
        if found is not None and not found.layout.has_dictionaries:
            return found
        if is_small:
            layouts = column_layouts(frame.header, frame.version)
        if found is None:
            found = self._judged(schema, layouts)
            if len(stored) <= _SCHEMA_BYTES_KEPT:
                _keep(self._alike, key, found)
        return found._replace(layout=StreamLayout(layouts, found.wanted))

    def _judged(self, schema: pa.Schema, layouts: Sequence[ColumnLayout]) -> _Columns:
        problems = [stored_problem(schema, name, self.declared[name]) for name in self.columns]
        problem = next(filter(None, problems), "")
        wanted = [] if problem else [schema.get_field_index(name) for name in self.columns]
        if wanted:
            problem = self._cast_problem(schema)
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        expands = has_dictionaries([schema.field(index).type for index in wanted])
        return _Columns(StreamLayout(layouts, wanted), wanted, options, expands, problem)

    def _cast_problem(self, schema: pa.Schema) -> str:
        """Why no value of these types can be cast; empty when values can."""
        arrays = [pa.nulls(0, schema.field(name).type) for name in self.columns]
        empty = pa.RecordBatch.from_arrays(arrays, names=self.columns)
        try:
            pa.Table.from_batches([empty]).unify_dictionaries()
            fit(empty, self.columns, self.declared)
        except pa.ArrowException as error:
            return f"its columns cannot be read: {error}"
        return ""

    def _pieces(self, held: _Held) -> Iterator[Decoded]:
        piece = _Piece()
        for batch, origins in self._stored(held):
            for first in range(0, batch.num_rows, _PIECE_ROWS):
                origin = origins[:, first : first + _PIECE_ROWS]
                if piece.rows >= _PIECE_ROWS:
                    message, row = origin[:, 0].tolist()
                    yield piece.decoded(self.schema, held.bad, (message, row))
                    piece = _Piece()
                piece.add(self._fitted(batch.slice(first, _PIECE_ROWS)), origin)
        yield piece.decoded(self.schema, held.bad, (held.end, 0))

    def _stored(self, held: _Held) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int64]]]:
        """Neighbours of one schema joined, since casting costs per call and not per row."""
        for _, group in groupby(list(held.reads), key=lambda n: held.reads[n].table.schema):
            numbers = list(group)
            try:
                yield _joined(held, numbers), held.origins(numbers)
            except (pa.ArrowException, MemoryError):
                yield from self._one_by_one(held, numbers)

    @staticmethod
    def _one_by_one(
        held: _Held, numbers: Sequence[int]
    ) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int64]]]:
        for number in numbers:
            try:
                yield _joined(held, [number]), held.origins([number])
            except MemoryError:
                held.bad[number] = OUT_OF_MEMORY
            except pa.ArrowException as error:
                held.bad[number] = f"its columns cannot be read: {error}"[:REASON_MAX]

    def _fitted(self, batch: pa.RecordBatch) -> Fitted:
        """Rows in declared types. Where not even that works, all of them are bad."""
        try:
            return fit(batch, self.columns, self.declared)
        except MemoryError:
            reason = OUT_OF_MEMORY
        except pa.ArrowException as error:
            reason = f"cannot be read: {error}"[:REASON_MAX]
        empty = [pa.nulls(batch.num_rows, each.type) for each in self.schema]
        return Fitted(
            pa.RecordBatch.from_arrays(empty, schema=self.schema),
            dict.fromkeys(range(batch.num_rows), reason),
        )


@dataclass
class _Piece:
    rows: int = 0
    batches: list[pa.RecordBatch] = field(default_factory=list)
    origins: list[npt.NDArray[np.int64]] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)

    def add(self, fitted: Fitted, origin: npt.NDArray[np.int64]) -> None:
        self.bad.update({self.rows + row: reason for row, reason in fitted.bad.items()})
        self.batches.append(fitted.batch)
        self.origins.append(origin)
        self.rows += fitted.batch.num_rows

    def decoded(self, schema: pa.Schema, bad: dict[int, str], end: tuple[int, int]) -> Decoded:
        """All of it, with the bad messages before its end, which are taken out."""
        origins = np.concatenate([np.zeros((2, 0), np.int64), *self.origins], axis=1)
        before = {number: bad.pop(number) for number in sorted(bad) if number < end[0]}
        messages, rows = origins
        batch = _concatenated(self.batches, schema)
        return Decoded(batch, messages, rows, end, before, self.bad)


def _schema_of(value: bytes) -> bytes:
    """The part of a stream that has its schema."""
    first = next(frames(value), None)
    if first is None or first.kind != SCHEMA:
        raise MetadataError("it does not begin with a schema")
    return value[: first.end]


def _joined(held: _Held, numbers: Sequence[int]) -> pa.RecordBatch:
    tables = [held.reads[number].table for number in numbers]
    joined = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    return _concatenated(joined.to_batches(), joined.schema)


def _counted(held: _Held) -> Decoded:
    """Rows without columns."""
    messages, rows = held.origins(list(held.reads))
    return Decoded(without_columns(len(rows)), messages, rows, (held.end, 0), held.bad)


def _concatenated(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.concat_batches(batches)
