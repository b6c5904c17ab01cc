"""The bytes of packed frames (docs/protocol.md): hello, credits, and records with their sections.

Numbers are little-endian. No length is trusted before it is checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from forebay.executors.wire.frames.memory import ALIGNMENT
from forebay.executors.wire.tokens import is_token

VERSION = 1
HELLO_BYTES = 120
HEADER_BYTES = 64
CREDIT = struct.Struct("<I")
# Kinds of records. END: the epoch is over. REFUSED: the caller gets nothing. UNSENDABLE: these rows
# cannot be sent, and a retry would not help.
ROWS, END, REFUSED, UNSENDABLE = 1, 2, 3, 4
_MAGIC = b"\x8eFBFRAME"  # neither text nor the beginning of an HTTP/2 connection
_HELLO = struct.Struct("<8sHHIq32s64s")
_HEADER = struct.Struct("<8sHHIQQQ24x")
_LENGTH = struct.Struct("<Q")
_VERSION_END = 10
_TEXT_BYTES_MAX = 4096
_SECTIONS_MAX = 4096


class FrameFormatError(ValueError):
    """Bytes that are not a frame, or rows that cannot be sent as one."""


class Hello(NamedTuple):
    """What a caller wants. schema: 32 bytes, the fingerprint of the columns that it expects."""

    epoch: int
    schema: bytes


class Header(NamedTuple):
    """The first 64 bytes of a record. payload_bytes: what follows them."""

    kind: int
    sections: int
    head_bytes: int
    payload_bytes: int
    rows: int


def padded(size: int) -> int:
    """`size`, or the next multiple of 64."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack_hello(token: str, hello: Hello) -> bytes:
    """The first bytes of a connection."""
    shown = token.encode()
    return _HELLO.pack(_MAGIC, VERSION, len(shown), 0, hello.epoch, hello.schema, shown)


def hello_problem(begun: bytes) -> str:
    """Why the bytes that a caller has sent so far cannot begin a hello; empty while they can."""
    if begun[: len(_MAGIC)] != _MAGIC[: len(begun)]:
        return "this is not a caller of a data executor"
    if len(begun) >= _VERSION_END:
        version = int.from_bytes(begun[len(_MAGIC) : _VERSION_END], "little")
        if version != VERSION:
            return f"the caller wants frames of version {version}, but these are of {VERSION}"
    return ""


def read_hello(data: bytes, token: str) -> Hello | None:
    """The caller's hello; None if it does not show the token.

    data: `HELLO_BYTES` in which `hello_problem` found no problem.
    """
    _, _, length, _, epoch, schema, shown = _HELLO.unpack(data)
    return Hello(epoch, schema) if is_token(shown[:length], token) else None


def pack_text(kind: int, text: str) -> bytes:
    """A record with a text, which may be empty."""
    said = text.encode()[:_TEXT_BYTES_MAX]
    return _HEADER.pack(_MAGIC, VERSION, kind, 0, len(said), len(said), 0) + said


def pack_rows(head: bytes, rows: int, lengths: Sequence[int], limit: int) -> bytes:
    """Header, lengths of sections and head of a frame; its sections follow.

    Raises:
        FrameFormatError: when all of it is more than `limit` bytes.
    """
    table = b"".join(map(_LENGTH.pack, lengths))
    begun = len(table) + len(head)
    payload = padded(begun) + sum(map(padded, lengths))
    if payload > limit:
        raise FrameFormatError(
            f"a minibatch of {rows} rows has {payload} bytes, but a frame can have at most "
            f"{limit}: lower train.minibatch_rows, or set `job.transport: flight`"
        )
    header = _HEADER.pack(_MAGIC, VERSION, ROWS, len(lengths), len(head), payload, rows)
    return header + table + head + bytes(padded(begun) - begun)


def read_header(data: bytes, limit: int) -> Header:
    """The header of a record of at most `limit` bytes.

    Raises:
        FrameFormatError: when it is not a valid header.
    """
    magic, version, kind, *numbers = _HEADER.unpack(data)
    if magic != _MAGIC:
        raise FrameFormatError(f"received bytes begin with {data[:8]!r} and are not a frame")
    if version != VERSION:
        raise FrameFormatError(f"received a frame of version {version}, but expected {VERSION}")
    header = Header(kind, *numbers)
    if kind not in {ROWS, END, REFUSED, UNSENDABLE}:
        raise FrameFormatError(f"received a record of unknown kind {kind}")
    most = limit if kind == ROWS else _TEXT_BYTES_MAX
    if header.payload_bytes > most:
        raise FrameFormatError(f"received a record of {header.payload_bytes} bytes: {most} at most")
    sections = _LENGTH.size * min(header.sections, _SECTIONS_MAX + 1)
    if header.sections > _SECTIONS_MAX or sections + header.head_bytes > header.payload_bytes:
        raise FrameFormatError(
            f"{header.sections} sections and a head of {header.head_bytes} bytes do not fit into a "
            f"record of {header.payload_bytes} bytes"
        )
    return header


def head_of(header: Header, payload: memoryview) -> bytes:
    """The record's head: a description of its rows, or a text."""
    first = _LENGTH.size * header.sections
    return bytes(payload[first : first + header.head_bytes])


def sections_of(header: Header, payload: memoryview) -> list[tuple[int, int]]:
    """(offset in the payload, bytes) of each section.

    Raises:
        FrameFormatError: when they do not fill the payload.
    """
    table = payload[: _LENGTH.size * header.sections]
    lengths = [length for (length,) in _LENGTH.iter_unpack(table)]
    found, offset = [], padded(len(table) + header.head_bytes)
    for length in lengths:
        found.append((offset, length))
        offset += padded(length)
    if offset != header.payload_bytes:
        raise FrameFormatError(
            f"sections end at byte {offset} of a record of {header.payload_bytes} bytes"
        )
    return found
