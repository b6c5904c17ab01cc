"""Finds the fields of the records in a decompressed record batch (Kafka's message format 2).

A record starts with its length, so only the borders between records have to be found one after the
other. The fields in a record are then decoded for all records together, one field at a time. A
small batch does not repay that: its records are decoded one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_FEW_RECORDS = 64  # fewer cost less in a loop than in calls of NumPy
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_LAST_SHIFT = 63  # of the tenth byte of a variable-length integer, which has one bit


class Fields(NamedTuple):
    """Fields of consecutive records. Keys and headers are skipped.

    offsets, timestamps: relative to those of the batch.
    values: None where a record has none.
    end: the position after the last record.
    """

    offsets: Ints
    timestamps: Ints
    values: list[bytes | None]
    end: int


def fields_of(body: bytes, count: int) -> Fields:
    """The fields of the first `count` records of a batch.

    The last record may end after the body: compare `end` with its length.

    Raises:
        IndexError: when a field would start after the body.
        ValueError: when a field ends after its record, or a number has more than 64 bits.
    """
    return _one_by_one(body, count) if count < _FEW_RECORDS else _together(body, count)


def _one_by_one(body: bytes, count: int) -> Fields:
    from kafka.record.util import decode_varint

    offsets, timestamps = [], []
    values: list[bytes | None] = []
    position = 0
    for number in range(count):
        length, position = decode_varint(body, position)
        end = position + length
        timestamp, position = decode_varint(body, position + 1)  # after one byte of attributes
        offset, position = decode_varint(body, position)
        key_length, position = decode_varint(body, position)
        value_length, position = decode_varint(body, position + max(key_length, 0))
        if position + max(value_length, 0) > end:
            raise ValueError(_too_long(number))
        is_long = not (_LEAST <= timestamp <= _MOST and _LEAST <= offset <= _MOST)
        if is_long or key_length < _LEAST or value_length < _LEAST:
            raise ValueError("a number has more than 64 bits")
        offsets.append(offset)
        timestamps.append(timestamp)
        values.append(body[position : position + value_length] if value_length >= 0 else None)
        position = end
    return Fields(np.array(offsets, np.int64), np.array(timestamps, np.int64), values, position)


def _together(body: bytes, count: int) -> Fields:
    starts = _starts(body, count)
    content = np.frombuffer(body, np.uint8)
    lengths, position = _integers(content, starts[:-1])
    ends = position + lengths
    timestamps, position = _integers(content, position + 1)  # after one byte of attributes
    offsets, position = _integers(content, position)
    keys, position = _integers(content, position)
    _require_within(keys, position, ends)
    sizes, position = _integers(content, position + np.maximum(keys, 0))
    _require_within(sizes, position, ends)
    stops = position + np.maximum(sizes, 0)
    values: list[bytes | None] = [
        body[start:stop] for start, stop in zip(position.tolist(), stops.tolist(), strict=True)
    ]
    for number in np.flatnonzero(sizes < 0).tolist():
        values[number] = None
    return Fields(offsets, timestamps, values, int(starts[-1]))


def _starts(body: bytes, count: int) -> Ints:
    """Where each record starts, and the end of the last one."""
    from kafka.record.util import decode_varint

    found = [0] * (count + 1)
    position = 0
    for number in range(1, count + 1):
        low = body[position]
        if low < 0x80:
            position += 1 + (low >> 1)
        elif (high := body[position + 1]) < 0x80:
            position += 2 + ((high << 6) | ((low & 0x7F) >> 1))
        else:
            length, start = decode_varint(body, position)
            if length > len(body):
                raise ValueError(f"record {number - 1} ends after its batch")
            position = start + length
        if low & 1:
            raise ValueError(f"record {number - 1} has a negative length")
        found[number] = position
    return np.array(found, np.int64)


def _integers(content: npt.NDArray[np.uint8], at: Ints) -> tuple[Ints, Ints]:
    """The variable-length zigzag integers at these positions, and the positions after them."""
    byte = content[at]
    coded = (byte & 0x7F).astype(np.uint64)
    after = at + 1
    longer = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(longer):
        byte = content[after[longer]]
        if shift > _LAST_SHIFT or (shift == _LAST_SHIFT and (byte > 1).any()):
            raise ValueError("a number has more than 64 bits")
        coded[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    return (coded >> np.uint64(1)).view(np.int64) ^ -(coded & np.uint64(1)).view(np.int64), after


def _require_within(sizes: Ints, position: Ints, ends: Ints) -> None:
    too_long = np.maximum(sizes, 0) > ends - position
    if too_long.any():
        raise ValueError(_too_long(int(np.argmax(too_long))))


def _too_long(number: int) -> str:
    return f"record {number} is shorter than its fields"
