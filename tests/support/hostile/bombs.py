"""Small messages that are large once decoded, or that would write out of bounds."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from support.hostile.arrow_streams import stream

_MANY = 100_000_000
_LONG = 300 << 20


def message(columns: Mapping[str, pa.Array], compression: str | None = None) -> bytes:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return stream([batch], batch.schema, compression)


def overflowing_views() -> bytes:
    """Null slots of a string view with negative sizes, so that a cast takes too little memory.

    Arrow 26 validates this message, and dies of casting it to strings.
    """
    rows, size = 64, 4000
    view = struct.pack("<i4sii", size, b"aaaa", 0, 0) * rows
    null = struct.pack("<i12s", -size, bytes(12)) * rows
    valid = np.packbits(np.arange(2 * rows) < rows, bitorder="little").tobytes()
    buffers = [pa.py_buffer(each) for each in (valid, view + null, b"a" * size)]
    array = pa.Array.from_buffers(pa.string_view(), 2 * rows, buffers, null_count=rows)
    return message({"x": array})


def zeros() -> pa.Array:
    """Eight hundred megabytes that compress well."""
    return pa.array(np.zeros(_MANY))


def long_list() -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, _MANY], pa.int32()), zeros())


def repeated_text() -> pa.Array:
    """A text of a megabyte, by dictionary in each of many rows."""
    indices = pa.array(np.zeros(100_000, np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(["a" * (1 << 20)]))


def long_dictionary() -> pa.Array:
    """One row, whose dictionary has a very long text."""
    return pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["a" * _LONG]))


def grown_dictionaries() -> bytes:
    """Batches whose dictionary grows a little each time: Arrow joins all of it for each batch."""
    schema = pa.schema([("x", pa.dictionary(pa.int32(), pa.string()))])
    words: list[str] = []
    batches = []
    for number in range(200):
        words.append("a" * 60_000 + str(number))
        values = pa.DictionaryArray.from_arrays(pa.array([number], pa.int32()), pa.array(words))
        batches.append(pa.record_batch([values], schema=schema))
    return stream(batches, schema, "zstd")
