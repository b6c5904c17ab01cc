"""Served rows as sections of a frame: the columns' own memory, without copies on either side.

A section holds the values of a column (int64, float32, or fixed-length lists of these); a column
of variable-length lists has one for its offsets, then one for its values. Served columns hold no
nulls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.executors.wire.frames.format import FrameFormatError

Section = list[pa.Buffer]
_OFFSET = np.dtype(np.int32)


def schema_fingerprint(schema: pa.Schema) -> bytes:
    """32 bytes that differ for different columns."""
    text = "\n".join(f"{field.name}: {field.type}" for field in schema)
    return hashlib.sha256(text.encode()).digest()


def pack_batches(batches: Sequence[pa.RecordBatch]) -> list[Section]:
    """The sections of one or more batches of one schema, each as a list of its buffers.

    Raises:
        FrameFormatError: for a column that holds a null, or that no section can hold.
    """
    found: list[Section] = []
    for place, field in enumerate(batches[0].schema):
        columns = [batch.column(place) for batch in batches]
        if any(column.null_count for column in columns):
            raise FrameFormatError(f"served column {field.name!r} holds a null")
        if pa.types.is_list(field.type):
            found += _lists(columns)
        elif pa.types.is_fixed_size_list(field.type):
            found.append([_values(_items(column)) for column in columns])
        else:
            found.append([_values(column) for column in columns])
    return found


def section_bytes(section: Section) -> int:
    """Bytes of a section."""
    return sum(buffer.size for buffer in section)


def read_batch(schema: pa.Schema, rows: int, sections: Sequence[pa.Buffer]) -> pa.RecordBatch:
    """A batch of `rows` rows, as views of sections.

    Raises:
        FrameFormatError: when the sections do not fit the schema and the number of rows.
    """
    left = list(sections)
    columns = [_column(field, rows, left) for field in schema]
    if left:
        raise FrameFormatError(f"{len(left)} sections belong to no column")
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _items(column: pa.Array) -> pa.Array:
    """The values of fixed-length lists, without the computation that `flatten` does."""
    size = column.type.list_size
    return column.values.slice(column.offset * size, len(column) * size)


def _values(column: pa.Array) -> pa.Buffer:
    """The memory of fixed-width values."""
    width = _width(column.type)
    if not len(column):  # which may have no memory
        return pa.py_buffer(b"")
    return column.buffers()[1].slice(column.offset * width, len(column) * width)


def _width(kind: pa.DataType) -> int:
    if not (pa.types.is_int64(kind) or pa.types.is_float32(kind)):
        raise FrameFormatError(f"values of type {kind} cannot be sent in frames")
    width: int = kind.byte_width
    return width


def _lists(columns: Sequence[pa.Array]) -> list[Section]:
    """Offsets from 0 on, of all columns as if they were one, and their values."""
    offsets: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
    values, count = [], 0
    for column in columns:
        found = column.offsets.to_numpy()
        first, last = int(found[0]), int(found[-1])
        offsets.append(found[1:].astype(np.int64) + (count - first))
        values.append(_values(column.values.slice(first, last - first)))
        count += last - first
    if count > np.iinfo(_OFFSET).max:
        raise FrameFormatError(f"{count} values of lists are more than a column can hold")
    return [[pa.py_buffer(np.concatenate(offsets).astype(_OFFSET))], values]


def _column(field: pa.Field, rows: int, left: list[pa.Buffer]) -> pa.Array:
    kind = field.type
    if pa.types.is_list(kind):
        offsets = _next(field, left, (rows + 1) * _OFFSET.itemsize)
        values = _next(field, left, _last_offset(field, offsets) * _width(kind.value_type))
        child = _array(kind.value_type, values)
        return pa.Array.from_buffers(kind, rows, [None, offsets], children=[child])
    if pa.types.is_fixed_size_list(kind):
        values = _next(field, left, rows * kind.list_size * _width(kind.value_type))
        child = _array(kind.value_type, values)
        return pa.Array.from_buffers(kind, rows, [None], children=[child])
    return _array(kind, _next(field, left, rows * _width(kind)))


def _array(kind: pa.DataType, values: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, values.size // _width(kind), [None, values])


def _next(field: pa.Field, left: list[pa.Buffer], size: int) -> pa.Buffer:
    if not left:
        raise FrameFormatError(f"column {field.name!r} is missing")
    found = left.pop(0)
    if found.size != size:
        raise FrameFormatError(
            f"a section of column {field.name!r} has {found.size} bytes instead of {size}"
        )
    return found


def _last_offset(field: pa.Field, offsets: pa.Buffer) -> int:
    found = np.frombuffer(offsets, _OFFSET)
    if found[0] != 0 or (found[1:] < found[:-1]).any():
        raise FrameFormatError(f"the offsets of column {field.name!r} do not ascend from 0")
    return int(found[-1])
