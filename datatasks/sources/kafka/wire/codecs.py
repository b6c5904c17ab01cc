"""Decompresses Kafka record batches with pyarrow's codecs: no further library is needed.

A few kilobytes may stand for gigabytes, so nothing is decompressed further than to a limit.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_LENGTH = struct.Struct(">i")
_STEP_BYTES = 256 << 10
_VARINT_BYTES = 5  # of 32 bits


class CodecError(ValueError):
    """The compressed body of a record batch cannot be read: what it does instead."""


class TooLargeError(ValueError):
    """The decompressed body has more bytes than it may have: how many it takes."""


def decompress(codec: int, body: bytes, bytes_max: int) -> bytes:
    """The records of a batch, decompressed by the codec number of its header.

    Raises:
        CodecError: when the body does not fit the codec, or the codec is unknown.
        TooLargeError: when there are more bytes than `bytes_max`, of which no more are made.
    """
    try:
        if codec == NONE:
            _require(len(body), bytes_max)
            return body
        if codec == GZIP:
            with gzip.open(io.BytesIO(body)) as stream:
                return _read(stream.read, bytes_max)
        if codec == SNAPPY:
            return _snappy(body, bytes_max)
        if codec in {LZ4, ZSTD}:
            name = "lz4" if codec == LZ4 else "zstd"
            with pa.CompressedInputStream(pa.BufferReader(body), name) as source:
                # Its `read` (pyarrow 26) never gives back the bytes that it made where it then
                # fails: a quarter of a megabyte for each batch of 80 bytes that is damaged.
                return _read(lambda size: source.read_buffer(size).to_pybytes(), bytes_max)
    except TooLargeError:
        raise
    except (OSError, EOFError, ValueError, IndexError, zlib.error, struct.error) as error:
        raise CodecError(f"does not decompress: {error}") from error
    raise CodecError(f"has the unknown compression codec {codec}")


def _require(size: int, bytes_max: int, known: str = "") -> None:
    if size > bytes_max:
        raise TooLargeError(f"takes {known}{size:,} bytes, and message_bytes_max is {bytes_max:,}")


def _read(read: Callable[[int], bytes], bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := read(_STEP_BYTES):
        size += len(piece)
        _require(size, bytes_max, "at least ")
        pieces.append(piece)
    return b"".join(pieces)


def _snappy(body: bytes, bytes_max: int) -> bytes:
    """Java clients frame Snappy blocks after xerial's header; others send one bare block."""
    if not body.startswith(_XERIAL_MAGIC):
        return _snappy_block(body, 0, bytes_max)
    pieces: list[bytes] = []
    position = _XERIAL_HEADER_BYTES
    size = 0
    while position < len(body):
        (length,) = _LENGTH.unpack_from(body, position)
        position += _LENGTH.size
        if length < 0:
            raise CodecError("does not decompress: a block has no length")
        pieces.append(_snappy_block(body[position : position + length], size, bytes_max))
        size += len(pieces[-1])
        position += length
    return b"".join(pieces)


def _snappy_block(block: bytes, before: int, bytes_max: int) -> bytes:
    """A Snappy block starts with its decompressed size as a little-endian varint."""
    size = shift = 0
    for byte in block[:_VARINT_BYTES]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    _require(before + size, bytes_max)
    return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))
