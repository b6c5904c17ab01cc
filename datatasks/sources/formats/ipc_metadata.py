"""Metadata of Arrow IPC messages, read without Arrow: what a message would take when decoded.

Arrow takes memory for what the metadata says before it looks at the data, and gives no limit. The
metadata are flatbuffers (Arrow's `Message.fbs`, `Schema.fbs`). Nothing here is trusted: every place
is inside the bytes at hand, or the message is refused.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Data = bytes | bytearray | mmap.mmap

SCHEMA, DICTIONARY, BATCH = 1, 2, 3
_CONTINUATION = 0xFFFFFFFF
_VERSION_5 = 4  # as the metadata counts
_FIELDS_MAX = 65_536
_DEPTH_MAX = 64
_OLD_COMPRESSION = b"ARROW:experimental_compression"
_ALL = 2**32
# What the least table takes with the place that points to it.
_PLACE_BYTES = 16

_u16 = struct.Struct("<H").unpack_from
_i32 = struct.Struct("<i").unpack_from
_u32 = struct.Struct("<I").unpack_from
i64 = struct.Struct("<q").unpack_from
_BLOCK = struct.Struct("<qixxxxq")  # of a file's footer


class MetadataError(ValueError):
    """The metadata of a message cannot be followed."""


# What reading bytes of any content may raise.
METADATA_ERRORS = (MetadataError, struct.error, IndexError, OverflowError, RecursionError)


class Table:
    """A table of a flatbuffer: fields by number, each of which may be left out.

    All of it is inside the metadata of one message, as for Arrow: parts that many messages share
    would be looked at again for each.
    """

    __slots__ = ("_at", "_data", "_fields", "_size")

    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - _i32(data, at)[0]
        if self._fields < 0:
            raise MetadataError("its metadata points before its beginning")
        self._size = _u16(data, self._fields)[0]

    def field(self, number: int) -> int:
        """Where a field is; 0 where the table has none."""
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return 0
        offset = _u16(self._data, self._fields + slot)[0]
        return self._at + offset if offset else 0

    def byte(self, number: int) -> int:
        """A number of one byte, 0 where it is left out."""
        at = self.field(number)
        return self._data[at] if at else 0

    def short(self, number: int) -> int:
        at = self.field(number)
        return int(_u16(self._data, at)[0]) if at else 0

    def long(self, number: int) -> int:
        at = self.field(number)
        return int(i64(self._data, at)[0]) if at else 0

    def table(self, number: int) -> Table | None:
        at = self.field(number)
        return Table(self._data, at + _u32(self._data, at)[0]) if at else None

    @property
    def metadata_bytes(self) -> int:
        """Of all that this table is a part of."""
        return len(self._data)

    def text_bytes(self, number: int) -> int:
        at = self.field(number)
        return int(_u32(self._data, at + _u32(self._data, at)[0])[0]) if at else 0

    def longs(self, number: int, each: int, most: int = _ALL) -> tuple[int, ...]:
        """The first elements of a vector of them: `each` signed numbers of eight bytes."""
        found = self.structs(number, 8 * each)
        return struct.unpack_from(f"<{each * min(len(found) // (8 * each), most)}q", found)

    def structs(self, number: int, size: int) -> memoryview:
        """A vector of structs of that many bytes, one after the other; not a copy."""
        at = self.field(number)
        if not at:
            return memoryview(b"")
        at += _u32(self._data, at)[0]
        count = size * _u32(self._data, at)[0]
        found = memoryview(self._data)[at + 4 : at + 4 + count]
        if len(found) < count:
            raise MetadataError("its metadata is longer than the message")
        return found

    def set_zero(self, number: int, each: int) -> None:
        """Make a number of eight bytes, or (`each` > 0) all those of a vector, zero."""
        at = self.field(number)
        if not at or isinstance(self._data, bytes) or self._data.readonly:
            return
        count = 1
        if each:
            at += _u32(self._data, at)[0]
            count = each * _u32(self._data, at)[0]
            at += 4
        if at + 8 * count > len(self._data):
            raise MetadataError("its metadata is longer than the message")
        self._data[at : at + 8 * count] = bytes(8 * count)

    def tables(self, number: int) -> Iterator[Table]:
        at = self.field(number)
        if at:
            at += _u32(self._data, at)[0]
            for index in range(_u32(self._data, at)[0]):
                each = at + 4 + 4 * index
                yield Table(self._data, each + _u32(self._data, each)[0])


class Frame(NamedTuple):
    """One message of a stream.

    kind: SCHEMA, DICTIONARY, BATCH, or of no interest. version: of the metadata. header: its
    table. body, end: where the body begins and the next message.
    """

    kind: int
    version: int
    header: Table
    body: int
    end: int


def frames(data: Data, start: int = 0) -> Iterator[Frame]:
    """The messages of a stream, up to its end or the mark of it."""
    at, whole = start, memoryview(data)
    while at < len(data):
        at, length = _length_at(data, at)
        if not length:
            return
        frame = frame_at(whole, at, at + length)
        yield frame
        at = frame.end


def _length_at(data: Data | memoryview, at: int) -> tuple[int, int]:
    """Where metadata begin, and their length; streams before Arrow 0.15 have no first mark."""
    first = _u32(data, at)[0]
    if first != _CONTINUATION:
        return at + 4, first
    return at + 8, _u32(data, at + 4)[0]


class Footer(NamedTuple):
    """The end of a file: its schema, and what dictionaries and batches it has."""

    version: int
    schema: Table
    dictionaries: Blocks
    batches: Blocks


_FILE_MAGIC = b"ARROW1"


def footer(data: Data) -> Footer:
    at = len(data) - len(_FILE_MAGIC) - 4
    length = _i32(data, at)[0] if at > 0 else 0
    if not 0 < length <= at or data[at + 4 :] != _FILE_MAGIC:
        raise MetadataError("it does not end as an Arrow file")
    within = memoryview(data)[at - length : at]
    table = Table(within, _u32(within, 0)[0])
    schema = table.table(1)
    if schema is None:
        raise MetadataError("it has no schema")
    _Texts(table).add_pairs(table, 4)
    dictionaries, batches = (Blocks(data, table.structs(number, _BLOCK.size)) for number in (2, 3))
    return Footer(table.short(0), schema, dictionaries, batches)


class Blocks:
    """Messages of a file. Each is looked at when it is asked for: many may be one and the same."""

    def __init__(self, data: Data, places: memoryview) -> None:
        """places: offset, length of the metadata, and length of the body of each."""
        self._data = memoryview(data)
        self._places = places

    def __len__(self) -> int:
        return len(self._places) // _BLOCK.size

    def __iter__(self) -> Iterator[Frame]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Frame:
        """MetadataError, struct.error or IndexError when it cannot be followed."""
        offset, metadata, _ = _BLOCK.unpack_from(self._places, number * _BLOCK.size)
        if offset < 0 or metadata < 0:
            raise MetadataError("an offset in it is negative")
        return frame_at(self._data, _length_at(self._data, offset)[0], offset + metadata)


def frame_at(data: memoryview, metadata: int, body: int) -> Frame:
    within = data[metadata:body]
    message = Table(within, _u32(within, 0)[0])
    header = message.table(2)
    length = message.long(3)
    if header is None or length < 0 or body + length > len(data):
        raise MetadataError("a part of it is missing")
    version, kind = message.short(0), message.byte(1)
    if message.field(4):
        _Texts(message).add_pairs(message, 4)
        if version < _VERSION_5 and _OLD_COMPRESSION in bytes(within):
            raise MetadataError("it is compressed as Arrow did before version 1.0")
    return Frame(kind, version, header, body, body + length)


class _Texts:
    """Counts what texts and fields take that Arrow copies out of the metadata of one message.

    Places of flatbuffers may be shared, and a copy is made for each that points to one: a text of
    a megabyte may so become many gigabytes. Writers share none, so that all fits into the metadata.
    """

    def __init__(self, table: Table) -> None:
        self._left = table.metadata_bytes

    def add(self, size: int) -> None:
        self._left -= _PLACE_BYTES + size
        if self._left < 0:
            raise MetadataError("parts of its metadata are used again and again")

    def add_pairs(self, table: Table, number: int) -> None:
        for each in table.tables(number):
            self.add(each.text_bytes(0) + each.text_bytes(1))


class ColumnLayout(NamedTuple):
    """What one column is in each batch.

    nodes, buffers: how many it has. views: how many parts of it have further buffers, of a number
    that each batch tells. dictionaries: ids of those that it needs.
    """

    nodes: int
    buffers: int
    views: int
    dictionaries: frozenset[int]

    @classmethod
    def of(cls, parts: Sequence[ColumnLayout]) -> ColumnLayout:
        """Several columns as one."""
        return cls(
            sum(each.nodes for each in parts),
            sum(each.buffers for each in parts),
            sum(each.views for each in parts),
            frozenset[int]().union(*(each.dictionaries for each in parts)),
        )


_WHATEVER = ColumnLayout(_ALL, _ALL, _ALL, frozenset())


def require_little_endian(schema: Table) -> None:
    """MetadataError for other values: Arrow turns them around before it checks them."""
    if schema.short(0):
        raise MetadataError("its byte order is big-endian")


def column_layouts(schema: Table, version: int) -> list[ColumnLayout]:
    """MetadataError for a schema that is not to be followed."""
    walk = _FieldWalk(version, _Texts(schema))
    walk.texts.add_pairs(schema, 2)
    return [walk.layout(field, 0) for field in schema.tables(1)]


_NULL, _TIMESTAMP, _UNION, _RUN_END_ENCODED = 1, 10, 14, 22
_VIEWS = frozenset({23, 24})
_DENSE = 1
# Buffers by the number of the type in `Schema.fbs`, without those of children.
_BUFFERS = {
    **dict.fromkeys((_NULL, _RUN_END_ENCODED), 0),
    **dict.fromkeys((13, 16), 1),  # struct, list of fixed size
    **dict.fromkeys((2, 3, 6, 7, 15), 2),  # integers, floats, bool, decimals, fixed-size binary
    **dict.fromkeys((8, 9, _TIMESTAMP, 11, 18), 2),  # date, time, instants, interval, duration
    **dict.fromkeys((12, 17, 21, 23, 24), 2),  # list, map, large list, views of binary and string
    **dict.fromkeys((4, 5, 19, 20), 3),  # binary, string, and the large ones
    **dict.fromkeys((25, 26), 3),  # views of lists
}


class _FieldWalk:
    """Walks the fields of one schema; tables that point to each other end it."""

    def __init__(self, version: int, texts: _Texts) -> None:
        self._version = version
        self._left = _FIELDS_MAX
        self.texts = texts

    def layout(self, field: Table, depth: int) -> ColumnLayout:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH_MAX:
            raise MetadataError(
                f"its schema has more than {_FIELDS_MAX:,} fields or {_DEPTH_MAX} levels"
            )
        kind = field.byte(2)
        instant = field.table(3) if kind == _TIMESTAMP else None
        zone_bytes = instant.text_bytes(1) if instant is not None else 0
        self.texts.add(field.text_bytes(0) + zone_bytes)
        self.texts.add_pairs(field, 6)
        children = ColumnLayout.of([self.layout(each, depth + 1) for each in field.tables(5)])
        encoding = field.table(4)
        if encoding is not None:  # the batch has its indices, the dictionary what it is made of
            return ColumnLayout(1, 2, 0, children.dictionaries | {encoding.long(0)})
        return ColumnLayout(
            1 + children.nodes,
            self._buffers(field, kind) + children.buffers,
            (kind in _VIEWS) + children.views,
            children.dictionaries,
        )

    def _buffers(self, field: Table, kind: int) -> int:
        if kind == _UNION:
            union = field.table(3)
            dense = union is not None and union.short(0) == _DENSE
            return 1 + dense + (self._version < _VERSION_5)
        if kind not in _BUFFERS:
            raise MetadataError(f"it has a column of a type without a name (number {kind})")
        return _BUFFERS[kind]


class BatchLayout(NamedTuple):
    """What a record batch, or the values of a dictionary, say of themselves.

    nodes: length and nulls of each, one after the other. buffers: offset and length of each.
    views: how many further buffers each part with such has.
    """

    rows: int
    nodes: tuple[int, ...]
    buffers: tuple[int, ...]
    views: tuple[int, ...]
    is_compressed: bool

    @classmethod
    def of(cls, batch: Table, whole: ColumnLayout = _WHATEVER) -> BatchLayout:
        """whole: what is in the batch, so that no more is read."""
        views = batch.longs(4, 1, whole.views)
        buffers = whole.buffers + sum(max(0, each) for each in views)
        return cls(
            rows=batch.long(0),
            nodes=batch.longs(1, 2, whole.nodes),
            buffers=batch.longs(2, 2, min(_ALL, buffers)),
            views=views,
            is_compressed=is_compressed(batch),
        )


def is_compressed(batch: Table) -> bool:
    return bool(batch.field(3))
