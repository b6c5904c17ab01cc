"""Parquet files that are only a footer: the caller decides what it claims.

Written as Thrift's compact protocol, by the numbers of fields in parquet.thrift.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_I32, _I64, _TEXT, _LIST, _STRUCT = 5, 6, 8, 9, 12
_MAGIC = b"PAR1"
_INT64, _TIMESTAMP_MICROS = 2, 10
_LONG_LIST = 15

Field = tuple[int, int, bytes]


class Claim(NamedTuple):
    """A row group: how many rows and bytes, and the bounds of its times in microseconds.

    low, high: None where it says that all are null.
    """

    rows: int
    low: int | None = None
    high: int | None = None
    size: int = 8


def forged_file(claims: Sequence[Claim]) -> bytes:
    name = b"at"
    elements = [
        _struct(_text(4, b"schema"), _int(5, 1, _I32)),
        _struct(
            _int(1, _INT64, _I32),
            _int(3, 1, _I32),
            _text(4, name),
            _int(6, _TIMESTAMP_MICROS, _I32),
        ),
    ]
    metadata = _struct(
        _int(1, 1, _I32),
        _list(2, _STRUCT, elements),
        _int(3, sum(claim.rows for claim in claims)),
        _list(4, _STRUCT, [_row_group(claim, name) for claim in claims]),
        _text(6, b"parquet-cpp-arrow version 26.0.0"),
        _list(7, _STRUCT, [_struct((1, _STRUCT, _struct()))]),
    )
    return _MAGIC + bytes(16) + metadata + struct.pack("<I", len(metadata)) + _MAGIC


def _row_group(claim: Claim, name: bytes) -> bytes:
    values = max(claim.rows, 0)
    bounds = [_int(3, values)]
    if claim.low is not None and claim.high is not None:
        low, high = struct.pack("<q", claim.low), struct.pack("<q", claim.high)
        bounds = [_int(3, 0), _text(5, high), _text(6, low)]
    chunk = _struct(
        _int(1, _INT64, _I32),
        _list(2, _I32, [_zigzag(0)]),
        _list(3, _TEXT, [_varint(len(name)) + name]),
        _int(4, 0, _I32),
        _int(5, values),
        _int(6, 8),
        _int(7, 8),
        _int(9, 4),
        (12, _STRUCT, _struct(*bounds)),
    )
    column = _struct(_int(2, 4), (3, _STRUCT, chunk))
    return _struct(_list(1, _STRUCT, [column]), _int(2, claim.size), _int(3, claim.rows))


def _struct(*fields: Field) -> bytes:
    content, last = b"", 0
    for number, kind, value in fields:
        content += bytes([(number - last) << 4 | kind]) + value
        last = number
    return content + b"\0"


def _int(number: int, value: int, kind: int = _I64) -> Field:
    return number, kind, _zigzag(value)


def _text(number: int, value: bytes) -> Field:
    return number, _TEXT, _varint(len(value)) + value


def _list(number: int, kind: int, items: Sequence[bytes]) -> Field:
    count = len(items)
    head = (
        bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([0xF0 | kind]) + _varint(count)
    )
    return number, _LIST, head + b"".join(items)


def _zigzag(value: int) -> bytes:
    return _varint(((value << 1) ^ (value >> 63)) & (2**64 - 1))


def _varint(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])
