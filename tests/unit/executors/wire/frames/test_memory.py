"""Memory of frames: aligned, reused, and never while anything refers to it."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

from forebay.executors.wire.frames.memory import FrameMemory


def filled(memory: FrameMemory, size: int, value: int) -> pa.Buffer:
    buffer = memory.take(size)
    memoryview(buffer).cast("B")[:] = bytes([value]) * size
    return buffer


def test_memory_begins_at_a_multiple_of_64_and_has_the_size_asked_for() -> None:
    memory = FrameMemory(2)
    for size in (0, 1, 63, 4097, 3 << 20):
        buffer = memory.take(size)
        assert buffer.size == size
        assert buffer.address % 64 == 0
        assert buffer.is_mutable


def test_a_block_is_used_again_once_nothing_refers_to_it() -> None:
    memory = FrameMemory(2)
    first = memory.take(1000)
    address = first.address
    assert memory.take(1000).address != address
    del first
    gc.collect()
    assert memory.take(900).address == address


def test_an_array_keeps_its_block() -> None:
    """The buffer and all between may be gone."""
    memory = FrameMemory(4)
    array = pa.Array.from_buffers(pa.int64(), 8, [None, filled(memory, 64, 1)])[2:4]
    numbers = array.to_numpy()
    part = np.frombuffer(filled(memory, 64, 2), np.uint8)[5:]
    del array
    gc.collect()
    for value in range(10):
        filled(memory, 64, value)
    assert numbers.tolist() == [0x0101010101010101] * 2
    assert set(part.tolist()) == {2}


def test_a_larger_frame_gets_a_larger_block() -> None:
    memory = FrameMemory(1)
    del (small := [memory.take(10)])[:]
    assert small == []
    large = filled(memory, 5 << 20, 7)
    assert large.size == 5 << 20


def test_no_more_blocks_stay_than_wanted() -> None:
    memory = FrameMemory(2)
    taken = [memory.take(10) for _ in range(5)]
    addresses = [each.address for each in taken]
    taken.clear()
    gc.collect()
    again = [memory.take(10).address for _ in range(1)]
    assert again[0] in addresses
    assert len(memory._free) == 2


def test_a_huge_block_goes_back_to_the_system() -> None:
    memory = FrameMemory(2)
    huge = memory.take(65 << 20)
    del huge
    gc.collect()
    assert len(memory._free) == 0
