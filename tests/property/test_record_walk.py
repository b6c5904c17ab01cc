"""Fields of Kafka's records, decoded all at a time, are those that a loop over them finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forebay.datatasks.sources.kafka.wire.walk import Fields, fields_of

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
SMALL = st.integers(-70, 20_000)
BYTES = st.none() | st.binary(max_size=300)


class Record(NamedTuple):
    timestamp: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: bytes


RECORDS = st.builds(Record, SMALL | INT64, SMALL | INT64, BYTES, BYTES, st.binary(max_size=20))
# Both ways of decoding: a few records, and many that are some of them over and over.
BATCHES = st.builds(list.__mul__, st.lists(RECORDS, max_size=12), st.sampled_from([1, 70]))


def integer(number: int) -> bytes:
    """Zigzag, then seven bits a byte."""
    left, found = ((number << 1) ^ (number >> 63)) & ((1 << 64) - 1), bytearray()
    while left >= 0x80:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def text(value: bytes | None) -> bytes:
    return integer(-1) if value is None else integer(len(value)) + value


def encoded(records: list[Record]) -> bytes:
    found = []
    for each in records:
        numbers = integer(each.timestamp) + integer(each.offset)
        fields = b"\0" + numbers + text(each.key) + text(each.value) + each.headers
        found.append(integer(len(fields)) + fields)
    return b"".join(found)


def looped(body: bytes, count: int) -> list[tuple[int, int, bytes | None]] | None:
    """Record by record with kafka-python's function; None for what is refused."""
    from kafka.record.util import decode_varint

    found, position = [], 0
    try:
        for _ in range(count):
            length, position = decode_varint(body, position)
            end = position + length
            timestamp, position = decode_varint(body, position + 1)
            offset, position = decode_varint(body, position)
            key, position = decode_varint(body, position)
            size, position = decode_varint(body, position + max(key, 0))
            if position + max(size, 0) > end or min(key, size) < -(1 << 63):
                return None
            found.append((timestamp, offset, None if size < 0 else body[position:][:size]))
            position = end
    except (IndexError, ValueError):
        return None
    return found if position == len(body) else None


def rows(fields: Fields) -> list[tuple[int, int, bytes | None]]:
    numbers = zip(fields.timestamps.tolist(), fields.offsets.tolist(), strict=True)
    return [(*pair, value) for pair, value in zip(numbers, fields.values, strict=True)]


@given(BATCHES)
def test_every_field_comes_back(records: list[Record]) -> None:
    body = encoded(records)
    found = fields_of(body, len(records))
    assert found.end == len(body)
    assert found.offsets.dtype == found.timestamps.dtype == np.int64
    assert rows(found) == [(each.timestamp, each.offset, each.value) for each in records]


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("length", ["key", "value"])
def test_a_length_of_more_than_64_bits_is_no_null(count: int, length: str) -> None:
    negative = b"\x81" + 8 * b"\x80" + b"\x02"
    texts = negative + text(b"v") if length == "key" else text(b"k") + negative
    fields = b"\0" + integer(0) + integer(0) + texts + b"\0"
    with pytest.raises(ValueError, match="a number has more than 64 bits"):
        fields_of(count * (integer(len(fields)) + fields), count)


@given(BATCHES.filter(bool), st.data())
@example([Record(0, 0, None, b"", b"")] * 70, None)
def test_hostile_bytes_are_refused_or_mean_the_same(
    records: list[Record], data: st.DataObject | None
) -> None:
    body = bytearray(encoded(records))
    if data is None:
        body[-1:] = b"\x80"
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(body)
    expected = looped(content, len(records))
    try:
        found = fields_of(content, len(records))
    except (IndexError, ValueError):
        overflown = expected is not None and any(
            not -(1 << 63) <= number < 1 << 63 for row in expected for number in row[:2]
        )
        assert expected is None or overflown
        return
    assert expected == (rows(found) if found.end == len(content) else None)
