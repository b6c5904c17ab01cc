"""Kind `tfrecord`: each record is one tf.Example, a row. TensorFlow is not needed.

The framing is described in tensorflow.org/tutorials/load_data/tfrecord, and the messages in
tensorflow/core/example/{example,feature}.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.common.rows.chunks import bad_texts
from forebay.datatasks.sources.common.values.casting import Fitted, fit
from forebay.datatasks.sources.common.values.times import usual_instants
from forebay.datatasks.sources.records.blocks import (
    RECORD_BYTES_MAX,
    Block,
    Ints,
    Records,
    bad_record,
    lost_rest,
    too_long,
)
from forebay.datatasks.sources.records.streams import DamageError

_HEAD, _CHECKSUM = struct.Struct("<QI"), struct.Struct("<I")
_LENGTH_BYTES = 8
_KINDS: Mapping[str, pa.DataType] = {
    "bytes_list": pa.binary(),
    "float_list": pa.float32(),
    "int64_list": pa.int64(),
}
# Which of them a column may be, the usual one first.
_READ_FROM: Mapping[ColumnType, tuple[str, ...]] = {
    ColumnType.STRING: ("bytes_list",),
    ColumnType.INT: ("int64_list",),
    ColumnType.FLOAT: ("float_list", "int64_list"),
    ColumnType.BOOL: ("int64_list",),
    ColumnType.TIMESTAMP: ("int64_list", "bytes_list"),
}


def masked_crc(data: bytes | memoryview) -> int:
    """The checksum of the framing."""
    found = crc32c.crc32c(data)
    return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF


# tf.Example. TensorFlow has it too, but takes seconds to be imported.
_PROTO = """
name: "forebay/example.proto" package: "tensorflow" syntax: "proto3"
message_type { name: "BytesList"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "FloatList"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT } }
message_type { name: "Int64List"
  field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type { name: "Feature" oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 type: TYPE_MESSAGE type_name: ".tensorflow.BytesList"
    label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "float_list" number: 2 type: TYPE_MESSAGE type_name: ".tensorflow.FloatList"
    label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "int64_list" number: 3 type: TYPE_MESSAGE type_name: ".tensorflow.Int64List"
    label: LABEL_OPTIONAL oneof_index: 0 } }
message_type { name: "Features"
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE
      type_name: ".tensorflow.Feature" } }
  field { name: "feature" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE
    type_name: ".tensorflow.Features.FeatureEntry" } }
message_type { name: "Example"
  field { name: "features" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE
    type_name: ".tensorflow.Features" } }
"""


def _example_class() -> Any:  # noqa: ANN401 - made at run time
    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(_PROTO, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


EXAMPLE = _example_class()
_ABSENT = EXAMPLE().features.feature["absent"]
_VALUES_OF = {name: attrgetter(f"{name}.value") for name in _KINDS}


class TfExamples(Records):
    """A missing feature, and one without values of a single column, is a null."""

    place = "record"

    def prepare(self) -> None:
        """Nothing is needed."""

    def blocks(self, pieces: Iterator[bytes]) -> Iterator[Block]:
        """See `Records.blocks`. In memory are a piece and a record that is not too long."""
        rest, first, dropped = b"", 0, 0
        try:
            for piece in pieces:
                if dropped >= len(piece):
                    dropped -= len(piece)
                    continue
                data, dropped = rest + piece[dropped:], 0
                block, at = _cut(data, first)
                if len(block):
                    yield block
                    first = block.end
                rest = data[at:]
                if len(rest) >= _HEAD.size:
                    length, checksum = _HEAD.unpack_from(rest)
                    if checksum != masked_crc(rest[:_LENGTH_BYTES]):
                        yield lost_rest(first, first + 1, "its length is damaged")
                        return
                    if length > RECORD_BYTES_MAX:
                        yield bad_record(first, first + 1, too_long(length))
                        dropped = _HEAD.size + length + _CHECKSUM.size - len(rest)
                        rest, first = b"", first + 1
        except DamageError as error:
            yield lost_rest(first, first + 1, error)
            return
        if rest or dropped:
            yield lost_rest(first, first + 1, "the file ends in it")

    def decode(self, block: Block) -> Fitted:
        maps, bad = [], dict[int, str]()
        for row, value in enumerate(block.values()):
            try:
                maps.append(EXAMPLE.FromString(value).features.feature)
            except DecodeError as error:
                bad[row] = f"it is no tf.Example: {error}"
                maps.append({})
        if not self.columns:
            return Fitted(self.spread(self.nothing(), np.zeros(0, np.int64), len(block)), bad)
        arrays = []
        for name in self.columns:
            array, odd = _Column(maps, name, self.declared[name]).read()
            arrays.append(array)
            bad = odd | bad
        stored = pa.RecordBatch.from_arrays(arrays, names=self.columns)
        bad = bad_texts(stored, self.columns, self.declared) | bad
        fitted = fit(stored, self.columns, self.declared)
        return Fitted(fitted.batch, fitted.bad | bad)

    def stored_schema(self, values: Sequence[bytes]) -> pa.Schema:
        found: dict[str, pa.DataType] = {}
        for value in values:
            for name, feature in EXAMPLE.FromString(value).features.feature.items():
                kind = feature.WhichOneof("kind")
                items = [] if kind is None else _VALUES_OF[kind](feature)
                stored = _seen_type(str(kind), items) if items else pa.null()
                found[name] = max(found.get(name, stored), stored, key=_says_most)
        return pa.schema(sorted(found.items()))

    @staticmethod
    def fits(stored: pa.DataType, declared: ColumnType) -> bool:
        if declared in LIST_ITEMS and not pat.is_list(stored):
            return TfExamples.fits(stored, LIST_ITEMS[declared])
        if declared in {ColumnType.INT, ColumnType.BOOL}:
            return bool(pat.is_integer(stored))
        return Records.fits(stored, declared)


def _seen_type(kind: str, values: Sequence[Any]) -> pa.DataType:
    item = _KINDS[kind]
    if kind == "bytes_list":
        texts = pa.array(list(values), pa.binary()).view(pa.string())
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            return item if len(values) == 1 else pa.list_(item)
        times = usual_instants(texts)
        item = texts.type if times is None else times.type
    return item if len(values) == 1 else pa.list_(item)


def _says_most(stored: pa.DataType) -> int:
    return 0 if pat.is_null(stored) else 1 + pat.is_list(stored)


def _cut(data: bytes, first: int) -> tuple[Block, int]:
    """The whole records of some bytes, and where the first one begins that is not whole."""
    view = memoryview(data)
    starts: list[int] = []
    ends: list[int] = []
    bad: dict[int, str] = {}
    at, size = 0, len(data)
    while at + _HEAD.size <= size:
        length, checksum = _HEAD.unpack_from(data, at)
        start = at + _HEAD.size
        end = start + length
        after = end + _CHECKSUM.size
        if after > size:
            break
        if checksum != masked_crc(view[at : at + _LENGTH_BYTES]):
            break
        if length > RECORD_BYTES_MAX:
            bad[len(starts)] = too_long(length)
        elif _CHECKSUM.unpack_from(data, end)[0] != masked_crc(view[start:end]):
            bad[len(starts)] = "its checksum is not that of its bytes"
        starts.append(start)
        ends.append(end)
        at = after
    places = np.arange(first + 1, first + 1 + len(starts))
    found = Block(data, np.array(starts, np.int64), np.array(ends, np.int64), first, places, bad)
    return found, at


class _Column:
    """One feature of many messages."""

    def __init__(self, maps: Sequence[Any], name: str, declared: ColumnType) -> None:
        self._item = LIST_ITEMS.get(declared, declared)
        self._is_list = declared in LIST_ITEMS
        self._name, self._said = name, f"column {name!r} as {declared.value}"
        self._found = [
            each[name] if name in each else _ABSENT  # noqa: SIM401 - `get` takes twice as long
            for each in maps
        ]
        self._usual, *self._others = _READ_FROM[self._item]
        self.bad: dict[int, str] = {}

    def read(self) -> tuple[pa.Array, dict[int, str]]:
        """The column in a type that `fit` casts, and the rows that have something else."""
        lists = list(map(_VALUES_OF[self._usual], self._found))
        lengths = _lengths(lists)
        texts: dict[int, Any] = {}
        for row in np.flatnonzero(lengths == 0).tolist():
            kind = None if (f := self._found[row]) is _ABSENT else f.WhichOneof("kind")
            if kind in self._others:
                values = _VALUES_OF[kind](f)
                if kind == "bytes_list":
                    texts[row] = values
                else:
                    lists[row] = values
                    lengths[row] = len(values)
            elif kind not in {None, self._usual} and _VALUES_OF[kind](f):
                self.bad[row] = f"{self._said}: it is a {kind}"
        array = self._array(lists, _KINDS[self._usual], lengths)
        if self._item is ColumnType.TIMESTAMP:
            array = self._instants(array, texts)
        if self._item is ColumnType.BOOL:
            array = self._flags(array)
        return array, self.bad

    def _array(self, lists: Sequence[Any], stored: pa.DataType, lengths: Ints) -> pa.Array:
        is_single = bool((lengths == 1).all())
        flat = [each[0] for each in lists] if is_single else list(chain.from_iterable(lists))
        if self._item is ColumnType.FLOAT:  # of ints too, also of those that no float equals
            values = pa.array(np.fromiter(flat, np.float64, len(flat)))
        else:
            values = pa.array(flat, stored)
        if pat.is_binary(stored):
            values = values.view(pa.string())
        ends = np.cumsum(lengths)
        if self._is_list:
            absent = pa.array([each is _ABSENT for each in self._found], pa.bool_())
            offsets = pa.array(np.append(0, ends).astype(np.int32))
            return pa.ListArray.from_arrays(offsets, values, mask=absent)
        for row in np.flatnonzero(lengths > 1).tolist():
            self.bad[row] = f"{self._said}: it has {lengths[row]} values"
        if is_single:
            return values
        return values.take(pa.array(ends - lengths, mask=lengths != 1))

    def _instants(self, ticks: pa.Array, texts: Mapping[int, Any]) -> pa.Array:
        """From milliseconds since 1970 or ISO 8601 texts."""
        times = self._fitted(ticks.cast(pa.timestamp("ms", tz="UTC")))
        if not texts:
            return times
        lists = [texts.get(row, ()) for row in range(len(ticks))]
        written = self._array(lists, pa.binary(), _lengths(lists))
        return pc.coalesce(times, self._fitted(written))

    def _fitted(self, array: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_arrays([array], names=[self._name])
        fitted = fit(batch, [self._name], {self._name: ColumnType.TIMESTAMP})
        self.bad |= fitted.bad
        return fitted.batch.column(0)

    def _flags(self, numbers: pa.Array) -> pa.Array:
        wrong = pc.fill_null(pc.and_(pc.not_equal(numbers, 0), pc.not_equal(numbers, 1)), False)  # noqa: FBT003
        for row in np.flatnonzero(np.asarray(wrong)).tolist():
            self.bad[row] = f"{self._said}: {numbers[row]}"
        return numbers.cast(pa.bool_())


def _lengths(lists: Sequence[Any]) -> Ints:
    return np.fromiter(map(len, lists), np.int64, len(lists))
