"""How many rows and bytes the wanted columns of an Arrow IPC stream take once they are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from forebay.datatasks.sources.formats.ipc_metadata import (
    BATCH,
    DICTIONARY,
    BatchLayout,
    ColumnLayout,
    Data,
    Frame,
    MetadataError,
    Table,
    i64,
)

# What a value takes at most in a declared type that is not text, and a column of a batch as objects
# of Arrow.
_VALUE_BYTES, _NODE_BYTES = 8, 512
_ALL = 2**31


class Size(NamedTuple):
    rows: int
    bytes: int


class StreamLayout:
    """Where the wanted columns are in the batches of one schema.

    has_dictionaries: whether any column has one. has_others: whether one that is not wanted has.
    """

    def __init__(self, columns: Sequence[ColumnLayout], wanted: Sequence[int]) -> None:
        """wanted: indices of columns."""
        self._columns = columns
        self._wanted = sorted(wanted)
        self._dictionaries = ColumnLayout.of([columns[index] for index in wanted]).dictionaries
        self._whole = ColumnLayout.of(columns)
        self.has_dictionaries = bool(self._whole.dictionaries)
        self.has_others = self._whole.dictionaries != self._dictionaries
        self._fixed = _Ranges.of(columns, self._wanted, ())

    def empty_others(self, frames: Iterable[Frame]) -> None:
        """Empty the dictionaries of other columns, which Arrow would decode unasked."""
        for frame in frames:
            if frame.kind == DICTIONARY and frame.header.long(0) not in self._dictionaries:
                values = frame.header.table(1)
                if values is not None:
                    for number, each in ((0, 0), (1, 2), (2, 2)):
                        values.set_zero(number, each)

    def size(self, data: Data, frames: Iterable[Frame], bytes_max: int) -> Size:
        """Of some messages of these bytes, after the one with the schema.

        Beyond `bytes_max` nothing more is looked at. MetadataError, struct.error or IndexError when
        they cannot be followed.
        """
        rows = taken = 0
        dictionaries = _Dictionaries()
        for frame in frames:
            if frame.kind == BATCH:
                batch = BatchLayout.of(frame.header, self._whole)
                rows += max(0, batch.rows)
                taken += self._batch_bytes(data, frame.body, batch) + dictionaries.joined_bytes()
            elif frame.kind == DICTIONARY:
                taken += dictionaries.add(data, frame.body, frame.header)
            else:
                raise MetadataError("it has a message that holds no rows")
            if taken > bytes_max:
                break
        return Size(rows, taken)

    def _batch_bytes(self, data: Data, body: int, batch: BatchLayout) -> int:
        ranges = self._fixed
        if self._whole.views:
            ranges = _Ranges.of(self._columns, self._wanted, batch.views)
        nodes = [batch.nodes[2 * first : 2 * end : 2] for first, end in ranges.nodes]
        buffers = [_buffer_bytes(data, body, batch, first, end) for first, end in ranges.buffers]
        return _bytes(nodes, sum(buffers))


class _Ranges(NamedTuple):
    """First and end of nodes and of buffers that belong together."""

    nodes: list[tuple[int, int]]
    buffers: list[tuple[int, int]]

    @classmethod
    def of(
        cls, columns: Sequence[ColumnLayout], wanted: Sequence[int], views: Sequence[int]
    ) -> _Ranges:
        if len(wanted) == len(columns):
            return cls([(0, _ALL)], [(0, _ALL)])
        nodes, buffers, view = [0], [0], 0
        for each in columns:
            further = views[view : view + each.views]
            view += each.views
            nodes.append(nodes[-1] + each.nodes)
            buffers.append(buffers[-1] + each.buffers + sum(further))
        node_ranges, buffer_ranges = list(pairwise(nodes)), list(pairwise(buffers))
        return cls(
            [node_ranges[index] for index in wanted], [buffer_ranges[index] for index in wanted]
        )


class _Dictionaries:
    """Dictionaries of one stream. Those that come in parts are joined again for each batch."""

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}
        self._grown: set[int] = set()

    def add(self, data: Data, body: int, header: Table) -> int:
        values = header.table(1)
        if values is None:
            raise MetadataError("a dictionary of it has no values")
        batch = BatchLayout.of(values)
        taken = _NODE_BYTES * (len(batch.buffers) // 2)
        taken += _bytes([batch.nodes[::2]], _buffer_bytes(data, body, batch, 0, _ALL))
        number = header.long(0)
        if header.byte(2):
            self._grown.add(number)
            self._bytes[number] = self._bytes.get(number, 0) + taken
        else:
            self._bytes[number] = taken
        return taken

    def joined_bytes(self) -> int:
        """Bytes of those that have grown since the batch before."""
        taken = sum(self._bytes[number] for number in self._grown)
        self._grown.clear()
        return taken


def _bytes(nodes: Sequence[Sequence[int]], buffers: int) -> int:
    """Of columns as stored or as declared, whatever is more. nodes: how many values parts have."""
    values = sum(sum(_known(lengths)) for lengths in nodes)
    return max(_VALUE_BYTES * values, buffers) + _NODE_BYTES * sum(map(len, nodes))


def _buffer_bytes(data: Data, body: int, batch: BatchLayout, first: int, end: int) -> int:
    buffers = batch.buffers[2 * first : 2 * end]
    lengths = _known(buffers[1::2])
    if not batch.is_compressed:
        return sum(lengths)
    return sum(_decompressed(data, body, buffers[::2], lengths))


def _decompressed(
    data: Data, body: int, offsets: Sequence[int], lengths: Sequence[int]
) -> Iterator[int]:
    """Each compressed buffer begins with its length; -1 says that it is not compressed."""
    for offset, length in zip(_known(offsets), lengths, strict=True):
        if length:
            (prefix,) = i64(data, body + offset)
            yield length if prefix == -1 else _known((prefix,))[0]


def _known(lengths: Sequence[int]) -> Sequence[int]:
    if lengths and min(lengths) < 0:
        raise MetadataError("a length in it is negative")
    return lengths


def plain_bytes(columns: pa.Table | pa.RecordBatch) -> int:
    """Bytes of validated columns, about, in the declared types, without dictionaries."""
    return sum(
        _array_bytes(chunk)
        for column in columns.columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    )


def has_dictionaries(types: Iterable[pa.DataType]) -> bool:
    """Whether some of these, or the values of lists of these, have a dictionary."""
    return any(
        pat.is_dictionary(each.value_type if pat.is_nested(each) else each) for each in types
    )


def _array_bytes(array: pa.Array) -> int:
    values = _VALUE_BYTES * len(array)
    if pat.is_nested(array.type):
        return values + _array_bytes(array.flatten())
    if not pat.is_dictionary(array.type):
        return max(values, int(array.nbytes))
    return values + _text_bytes(array)


def _text_bytes(array: pa.DictionaryArray) -> int:
    dictionary = array.dictionary
    if not (pat.is_string(dictionary.type) or pat.is_large_string(dictionary.type)):
        return 0
    lengths = pc.binary_length(dictionary).fill_null(0).cast(pa.int64()).to_numpy()
    longest = int(lengths.max(initial=0))
    if longest * len(array) <= dictionary.nbytes:
        return longest * len(array)
    indices = array.indices.drop_null().cast(pa.int64(), safe=False).to_numpy()
    return int(np.bincount(indices, minlength=len(lengths)).astype(np.int64) @ lengths)
