"""Bytes of a file, decompressed piece by piece, as far as they can be read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from forebay.datatasks.sources.records.kind import COMPRESSED, Compression

PIECE_BYTES = 1 << 20
_STEP_BYTES = 64 << 10
_BLOCK_BYTES_MAX = 64 << 20  # of Snappy: Hadoop makes blocks of 256 KiB
_FRAMED = b"\xff\x06\x00\x00sNaPpY"
_GZIP_WINDOW = 31  # zlib: with gzip's header and checksum


class DamageError(Exception):
    """What comes next in a file cannot be read, nor anything after it."""


def compression_of(path: str) -> Compression:
    """By the end of a file's name."""
    return next((kind for end, kind in COMPRESSED.items() if path.endswith(end)), "none")


def pieces(file: Any, compression: Compression) -> Iterator[bytes]:  # noqa: ANN401 - Arrow's
    """Content of an Arrow file, in pieces of at most PIECE_BYTES but for Snappy's blocks.

    Small ones are joined: to whoever cuts and decodes them, each costs as much as a large one.

    Raises:
        DamageError: after all that could be read.
        OSError: when the storage fails.
    """
    found: list[bytes] = []
    size = 0
    try:
        for piece in _READ[compression](file):
            if size + len(piece) > PIECE_BYTES:
                yield b"".join(found)
                found, size = [], 0
            found.append(piece)
            size += len(piece)
    except DamageError:
        yield b"".join(found)
        raise
    yield b"".join(found)


def _plain(file: Any) -> Iterator[bytes]:  # noqa: ANN401
    while piece := file.read(PIECE_BYTES):
        yield piece


def _gzip(file: Any) -> Iterator[bytes]:  # noqa: ANN401
    """Members one after another, with zeros after the last, as gzip itself reads them."""
    member: Any = None
    for stored in _plain(file):
        while stored:
            if member is None:
                stored = stored.lstrip(b"\0")  # noqa: PLW2901 - what is left of it
                if not stored:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = member.decompress(stored, PIECE_BYTES)
            except zlib.error as error:
                raise DamageError(f"its gzip stream is damaged: {error}") from error
            if piece:
                yield piece
            stored = member.unused_data or member.unconsumed_tail  # noqa: PLW2901
            if member.eof:
                member = None
    if member is not None:
        raise DamageError("its gzip stream ends too early")


def _zstd(file: Any) -> Iterator[bytes]:  # noqa: ANN401
    stream = pa.CompressedInputStream(file, "zstd")
    while True:
        try:
            # Little, since what a failed call has made is lost. Not `read`, which then leaks it.
            piece = stream.read_buffer(_STEP_BYTES).to_pybytes()
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamageError(f"its zstd stream is damaged: {error}") from error
        if not piece:
            return
        yield piece


def _snappy(file: Any) -> Iterator[bytes]:  # noqa: ANN401
    """Hadoop's blocks, as Spark writes them, or the framing format, without its checksums."""
    head = file.read(len(_FRAMED))
    try:
        yield from _frames(file) if head == _FRAMED else _hadoop_blocks(file, head)
    except (struct.error, pa.ArrowException, ValueError) as error:
        raise DamageError(f"its Snappy blocks are damaged: {error}") from error


def _frames(file: Any) -> Iterator[bytes]:  # noqa: ANN401
    """github.com/google/snappy/blob/main/framing_format.txt."""
    while head := file.read(4):
        (word,) = struct.unpack("<I", head)
        kind, body = word & 0xFF, _exactly(file, word >> 8)
        if kind == 0:
            yield _block(body[4:])
        elif kind == 1:
            yield body[4:]
        elif kind < 0x80:
            raise ValueError(f"there is no chunk type {kind}")


def _hadoop_blocks(file: Any, head: bytes) -> Iterator[bytes]:  # noqa: ANN401
    """The decompressed size, then Snappy blocks, each after its stored size, up to that size."""
    while head:
        if len(head) < 4:
            head += _exactly(file, 4 - len(head))
        (left,) = struct.unpack_from(">I", head)
        head = head[4:]
        while left > 0:
            head += _exactly(file, max(0, 4 - len(head)))
            (size,) = struct.unpack_from(">I", head)
            stored, head = head[4 : 4 + size], head[4 + size :]
            piece = _block(stored + _exactly(file, size - len(stored)))
            left -= len(piece)
            if left < 0 or not piece:
                raise ValueError("a block does not have the size that is written before it")
            yield piece
        head = head or file.read(4)


def _exactly(file: Any, size: int) -> bytes:  # noqa: ANN401
    if size > _BLOCK_BYTES_MAX:
        raise ValueError(f"a block of {size:,} bytes, and at most {_BLOCK_BYTES_MAX:,} are read")
    content = bytes(file.read(size))
    if len(content) < size:
        raise ValueError("they end too early")
    return content


def _block(stored: bytes) -> bytes:
    """One Snappy block, which begins with its decompressed size as a varint."""
    size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(_varint(stored)))
    if size > _BLOCK_BYTES_MAX:
        raise ValueError(f"a block of {size:,} bytes, and at most {_BLOCK_BYTES_MAX:,} are made")
    try:
        return bytes(pa.Codec("snappy").decompress(stored, decompressed_size=size, asbytes=True))
    except OSError as error:
        raise ValueError(str(error)) from error


def _varint(stored: bytes) -> bytes:
    last = next((place for place, byte in enumerate(stored[:5]) if byte < 0x80), None)
    if last is None:
        raise ValueError("a block does not say its size")
    return stored[: last + 1]


_READ: Mapping[Compression, Callable[[Any], Iterator[bytes]]] = {
    "none": _plain,
    "gzip": _gzip,
    "zstd": _zstd,
    "snappy": _snappy,
}
