"""Packed frames: rows come out as they went in, and any other bytes are read or refused by name."""

from __future__ import annotations

import socket
from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.served_rows import SCHEMA, batch_of_lists, head_of

from forebay.errors import InfrastructureError
from forebay.executors.data_executor.packed_server import frame_parts
from forebay.executors.wire.frames.base import Received
from forebay.executors.wire.frames.format import (
    HELLO_BYTES,
    FrameFormatError,
    Hello,
    hello_problem,
    pack_hello,
    read_hello,
)
from forebay.executors.wire.frames.memory import FrameMemory
from forebay.executors.wire.frames.stream import PackedStream
from forebay.mixture.queue.queue import FrameRows

BYTES_MAX = 1 << 16
REFUSED = (FrameFormatError, ValidationError, InfrastructureError)
TOKEN = "x" * 43


class CountedMemory(FrameMemory):
    """Memory that remembers how much of it was asked for."""

    def __init__(self) -> None:
        super().__init__(1)
        self.most = 0

    def take(self, size: int) -> pa.Buffer:
        self.most = max(self.most, size)
        return super().take(size)


def received(data: bytes) -> tuple[Received | None, int]:
    """What a trainer makes of bytes of a connection that ends then, and of how much memory."""
    here, there = socket.socketpair()
    memory = CountedMemory()
    with here:
        stream = PackedStream("unix:data-0.0", there, SCHEMA, memory, BYTES_MAX)
        here.sendall(data)
        here.shutdown(socket.SHUT_WR)
        with closing(stream):
            try:
                return stream.receive(), memory.most
            finally:
                assert memory.most <= BYTES_MAX


def frame(batches: list[pa.RecordBatch]) -> bytes:
    rows = FrameRows("stream", 1, [(0, sum(each.num_rows for each in batches))], batches, {})
    parts = frame_parts(head_of(rows, 5, 0), rows, BYTES_MAX)
    return b"".join(bytes(part) for part in parts)


@st.composite
def batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Slices of batches, of lists of any length."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(1, 40))
        whole = batch_of_lists(rows, draw(st.integers(0, 99)), draw(st.integers(0, 5)))
        first = draw(st.integers(0, rows - 1))
        found.append(whole.slice(first, draw(st.integers(1, rows - first))))
    return found


@given(batches())
def test_rows_come_out_as_they_went_in(sent: list[pa.RecordBatch]) -> None:
    found, _ = received(frame(sent))
    assert found is not None
    assert found.batch is not None
    found.batch.validate(full=True)
    wanted = pa.Table.from_batches(sent).combine_chunks()
    assert pa.Table.from_batches([found.batch]).combine_chunks() == wanted
    for column in found.batch.columns:
        addresses = [each.address for each in column.buffers() if each is not None and each.size]
        assert [address % 64 for address in addresses] == [0] * len(addresses)


SOUND = frame([batch_of_lists(12, seed=1), batch_of_lists(5, seed=2).slice(2)])


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """The frame with bytes changed, mostly where lengths are; cut out, doubled, or cut off."""
    data = bytearray(SOUND)
    near = st.one_of(st.integers(0, 199), st.integers(0, len(data) - 1))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        place = min(draw(near), len(data) - 1)
        act = draw(st.sampled_from(["set", "set", "number", "cut", "double", "end"]))
        if act == "set":
            data[place] = draw(st.integers(0, 255))
        elif act == "number":
            number = draw(st.sampled_from([0, 1, 2**31 - 1, 2**32, 2**40, 2**63 - 1, 2**64 - 1]))
            data[place : place + 8] = number.to_bytes(8, "little")
        elif act == "cut":
            del data[place : place + draw(st.integers(1, 64))]
        elif act == "double":
            data[place:place] = data[place : place + draw(st.integers(1, 64))]
        else:
            del data[max(place, 1) :]
    return bytes(data) or b"\0"


@given(mutations())
def test_any_mutation_is_read_or_refused_by_name(data: bytes) -> None:
    try:
        found, _ = received(data)
    except REFUSED:
        return
    if found is not None and found.batch is not None:
        found.batch.validate(full=True)
        assert found.batch.num_rows == found.head.rows
        assert found.batch.schema == SCHEMA


@given(st.binary(min_size=1, max_size=300))
def test_bytes_of_anything_are_no_frame(data: bytes) -> None:
    with pytest.raises(REFUSED):
        received(data)


@given(st.integers(0, len(SOUND) - 1))
def test_a_frame_that_ends_early_is_a_broken_connection(end: int) -> None:
    with pytest.raises(InfrastructureError, match=r"data executor at unix:data-0\.0: it ended"):
        received(SOUND[:end])


@given(st.data())
def test_no_other_hello_shows_the_token(data: st.DataObject) -> None:
    hello = Hello(9, b"s" * 32)
    sound = pack_hello(TOKEN, hello)
    assert hello_problem(sound) == ""
    assert read_hello(sound, TOKEN) == hello
    place = data.draw(st.integers(0, HELLO_BYTES - 1))
    changed = bytearray(sound)
    changed[place] ^= data.draw(st.integers(1, 255))
    problem = hello_problem(bytes(changed))
    assert bool(problem) == (place < 10)
    read = read_hello(bytes(changed), TOKEN)
    assert (read is None) == (10 <= place < 12 or 56 <= place < 56 + len(TOKEN))
