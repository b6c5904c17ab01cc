"""Decompresses Kafka record batches with pyarrow's codecs: no further library has to be there."""

from __future__ import annotations

import gzip
import struct
import zlib

import pyarrow as pa

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_LENGTH = struct.Struct(">i")


class CodecError(ValueError):
    """The compressed body of a record batch cannot be read."""


def decompress(codec: int, body: bytes) -> bytes:
    """The records of a batch, decompressed by the codec number of its header.

    Raises:
        CodecError: when the body does not fit the codec, or the codec is unknown.
    """
    try:
        if codec == NONE:
            return body
        if codec == GZIP:
            return gzip.decompress(body)
        if codec == SNAPPY:
            return _snappy(body)
        if codec in {LZ4, ZSTD}:
            with pa.CompressedInputStream(
                pa.BufferReader(body), "lz4" if codec == LZ4 else "zstd"
            ) as stream:
                return bytes(stream.read())
    except (OSError, EOFError, ValueError, IndexError, zlib.error, struct.error) as error:
        raise CodecError(f"the record batch does not decompress: {error}") from error
    raise CodecError(f"unknown compression codec {codec}")


def _snappy(body: bytes) -> bytes:
    """Java clients frame Snappy blocks after xerial's header; others send one bare block."""
    if not body.startswith(_XERIAL_MAGIC):
        return _snappy_block(body)
    pieces = []
    position = _XERIAL_HEADER_BYTES
    while position < len(body):
        (length,) = _LENGTH.unpack_from(body, position)
        position += _LENGTH.size
        pieces.append(_snappy_block(body[position : position + length]))
        position += length
    return b"".join(pieces)


def _snappy_block(block: bytes) -> bytes:
    """A Snappy block starts with its decompressed size as a little-endian varint."""
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))
