"""Arrow IPC streams with faults, most of them in the numbers that Arrow's reader goes by."""

from __future__ import annotations

import functools
import random
from typing import NamedTuple

import pyarrow as pa

from forebay.datatasks.sources.formats.ipc_metadata import BATCH, DICTIONARY, frames
from support.hostile.bytes_changed import Places, changed
from support.hostile.tables import dictionaries, odd, plain


class Original(NamedTuple):
    """A sound stream, or file, and where its numbers are."""

    content: bytes
    places: Places


@functools.cache
def streams() -> list[Original]:
    """Sound messages: plain, compressed, in several batches, with dictionaries that grow."""
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
