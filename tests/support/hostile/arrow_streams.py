"""Arrow IPC streams with faults, most of them in the numbers that Arrow's reader goes by.

Columns of their tables are stored in every way that a producer may choose.
"""

from __future__ import annotations

import functools
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.formats.ipc_metadata import BATCH, DICTIONARY, frames
from support.hostile.bytes_changed import Places, changed

_AT = datetime(2026, 3, 1, tzinfo=UTC)
_WORDS = ["a", "", "wörd", None, "a longer one than fits into a view", "z"]


class Original(NamedTuple):
    content: bytes
    places: Places


@functools.cache
def streams() -> list[Original]:
    found: list[Original] = []
    for compression in (None, "zstd", "lz4"):
        tables = (plain(1), plain(40), odd(1), odd(40), plain(0))
        parts = [(each.to_batches(16), each.schema) for each in tables]
        batches = dictionaries(12)
        parts.append((batches, batches[0].schema))
        found += [_original(stream(*each, compression)) for each in parts]
    return found


def changed_stream(chance: random.Random) -> bytes:
    """One of them with faults; now and then the end of another one behind its beginning."""
    original = chance.choice(streams())
    found = changed(original.content, original.places, chance)
    if chance.random() < 0.03:
        other = chance.choice(streams()).content
        found = found[: chance.randrange(len(found) + 1)] + other[chance.randrange(len(other)) :]
    return found


def stream(
    batches: list[pa.RecordBatch], schema: pa.Schema, compression: str | None = None
) -> bytes:
    options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _original(content: bytes) -> Original:
    """All of the metadata, lengths in the bodies, and the bytes that say of what kind something is.

    Flatbuffers are aligned, so that each of their numbers is at a multiple of its size.
    """
    longs: list[int] = []
    ints: list[int] = []
    small: list[int] = []
    at = 0
    for frame in frames(content):
        longs += range(at, frame.body, 8)
        ints += range(at, frame.body, 4)
        small += range(at, frame.body)
        if frame.kind in {BATCH, DICTIONARY}:
            body = range(frame.body, frame.end, 8)
            longs += [*body] * 2
            ints += [*range(frame.body, frame.end, 4)] * 2
        at = frame.end
    return Original(content, Places(longs, ints, small))


def plain(rows: int) -> pa.Table:
    numbers = [None if n % 5 == 3 else n for n in range(rows)]
    words = [_WORDS[n % len(_WORDS)] for n in range(rows)]
    return pa.table(
        {
            "i": pa.array(numbers, pa.int64()),
            "f": pa.array([None if n is None else n / 2 for n in numbers], pa.float64()),
            "s": pa.array(words),
            "b": pa.array([None if n is None else n % 2 == 0 for n in numbers]),
            "t": pa.array([_AT for _ in numbers], pa.timestamp("us", "UTC")),
            "ls": pa.array([[word, "x"] if word else None for word in words]),
            "li": pa.array([[n, None] if n else [] for n in numbers], pa.list_(pa.int64())),
            "lf": pa.array([[0.5] for _ in numbers]),
        }
    )


def odd(rows: int) -> pa.Table:
    table = plain(rows)
    small = pa.array([n % 100 for n in range(rows)], pa.uint8())
    offsets = pa.array(np.arange(rows + 1) * 2, pa.int64())
    return pa.table(
        {
            "view": table["s"].cast(pa.string_view()),
            "i": pa.array(range(rows), pa.uint64()),
            "struct": pa.StructArray.from_arrays([small, small], ["x", "y"]),
            "f": pa.array([Decimal(n) for n in range(rows)], pa.decimal128(20, 2)),
            "s": table["s"].combine_chunks().dictionary_encode(),
            "word": table["s"].combine_chunks().dictionary_encode(),
            "b": pa.nulls(rows),
            "union": pa.UnionArray.from_sparse(
                pa.array([n % 2 for n in range(rows)], pa.int8()), [small, small]
            ),
            "t": pa.array(["2026-03-01T00:00Z"] * rows),
            "ls": pa.LargeListArray.from_arrays(offsets, pa.array(["p", "q"] * rows)),
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), small[:1]),
            "li": pa.ListArray.from_arrays(
                offsets.cast(pa.int32()), pa.array([1, 2] * rows).dictionary_encode()
            ),
            "lf": pa.FixedSizeListArray.from_arrays(pa.array([1.5, None] * rows), 2),
            "list_view": pa.array([[1]] * rows, pa.list_view(pa.int64())),
        }
    )


def dictionaries(rows: int) -> list[pa.RecordBatch]:
    words = [f"word {n}" for n in range(2 * rows)]
    schema = pa.schema([("i", pa.int16()), ("s", pa.dictionary(pa.int16(), pa.string()))])
    found = []
    for first in range(0, rows, max(1, rows // 3)):
        known = pa.array(words[: first + 4])
        values = pa.DictionaryArray.from_arrays(pa.array([first, None], pa.int16()), known)
        found.append(pa.record_batch([pa.array([1, 2], pa.int16()), values], schema=schema))
    return found
