"""Kafka record batches with faults, most of them with the CRC that a producer would give them."""

from __future__ import annotations

import functools
import gzip
import random
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from support.hostile.arrow_streams import changed_stream
from support.hostile.bytes_changed import Places, changed
from support.hostile.json_objects import changed_object

_HEADER_BYTES, _CRC_AT, _CRC_FROM = 61, 17, 21
_FIRST_MS = 1_772_323_200_000
_PLACES = Places(
    longs=[27, 35],  # first and largest timestamp
    ints=[8, 12, 23, 53, 57],  # length, leader epoch, last offset, first sequence, count
    small=[16, 21, 22, *range(_HEADER_BYTES, _HEADER_BYTES + 40)],
    byte_order="big",
)


def changed_batch(chance: random.Random) -> bytes:
    made = chance.choice((changed_object, changed_stream))
    values = [
        None if chance.random() < 0.1 else made(chance) for _ in range(chance.randrange(1, 6))
    ]
    if chance.random() < 0.004:  # a bomb, whose first bytes are records
        content = record_batch(0, values, 4)
        content = sealed(content[:_HEADER_BYTES] + _bomb() + content[_HEADER_BYTES:])
    else:
        content = record_batch(0, values, chance.randrange(5))
    if chance.random() < 0.9:
        content = changed(content, _PLACES, chance)
    return sealed(content) if chance.random() < 0.95 else content


def record_batch(
    first: int,
    values: Sequence[bytes | None],
    codec: int = 0,
    *,
    body: bytes | None = None,
    first_timestamp: int = _FIRST_MS,
) -> bytes:
    """A record batch from an offset on. body: its records as stored, instead of the right ones."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for number, value in enumerate(values):
        builder.append(number, _FIRST_MS + number, b"key", value, [])
    content = bytes(builder.build())
    head = bytearray(content[:_HEADER_BYTES])
    head[:8] = struct.pack(">q", first)
    head[22] = codec
    head[27:35] = struct.pack(">q", first_timestamp)
    stored_body = compressed(codec, content[_HEADER_BYTES:]) if body is None else bytes(body)
    return sealed(bytes(head) + stored_body)


def sealed(content: bytes) -> bytes:
    from kafka.record.util import calc_crc32c

    if len(content) <= _CRC_FROM:
        return content
    found = bytearray(content)
    found[8:12] = struct.pack(">i", len(found) - 12)
    found[_CRC_AT:_CRC_FROM] = struct.pack(">I", calc_crc32c(bytes(found[_CRC_FROM:])))
    return bytes(found)


@functools.cache
def _bomb() -> bytes:
    return compressed(4, bytes(200 << 20))


def compressed(codec: int, body: bytes) -> bytes:
    if codec == 0:
        return body
    if codec == 1:
        return gzip.compress(body, 1)
    if codec == 2:
        return bytes(pa.Codec("snappy").compress(body, asbytes=True))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4" if codec == 3 else "zstd") as stream:
        stream.write(body)
    return bytes(sink.getvalue().to_pybytes())


def stored(content: bytes) -> Any:
    from kafka.record.memory_records import MemoryRecords

    return MemoryRecords(content)
