"""A queue with readers that run in any order, and a trainer that takes rows in between.

Whoever is faster: one executor gives the same rows in the same minibatches and order.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forebay.mixture.queue.buffer import BufferedChunk
from forebay.mixture.queue.queue import FrameRows, Limits, PrioritisedQueue, QueueSources

FEEDS = ("batch", "stream", "batch")


@dataclass
class Reader:
    """A task as its runner reads it; each row takes `row_bytes` or a little more."""

    source: int
    name: str
    rows: deque[int]
    row_bytes: int
    is_decoding: bool = False
    read: int = 0
    given: list[int] = field(default_factory=list)

    def chunk(self, rows_max: int) -> BufferedChunk:
        count = min(rows_max, len(self.rows))
        hours = np.array([self.rows.popleft() for _ in range(count)], np.int32)
        first = self.read
        self.read += count
        rows = [f"{self.name}/{row}".ljust(self.row_bytes) for row in range(first, self.read)]
        batch = pa.record_batch([pa.array(rows, pa.string())], names=["row"])
        return BufferedChunk(batch, hours, lambda served: served)


class World:
    def __init__(
        self,
        readers: list[Reader],
        limits: Limits,
        together: int,
        weights: tuple[float, float, float] = (1.0, 5.0, 2.0),
        queue_unit: float = 1.0,
    ) -> None:
        self.limits = limits
        self.waiting = deque(readers)
        self.together = together
        self.reading: list[Reader] = []
        self.ended: list[Reader] = []
        self.frames: list[FrameRows] = []
        self.names = ["a", "b", "c"]
        floors = [0.0, 0.2, 0.0]
        sources = QueueSources(self.names, FEEDS, weights, [0, 1, 2], floors, queue_unit)
        self.queue = PrioritisedQueue(
            sources, limits, dict.fromkeys(self.names, together), clock=lambda: self.now
        )
        self.now = 0.0
        self.largest = [0, 0, 0]

    def lease(self) -> None:
        """As the driver does: `together` tasks of a source at a time, in order."""
        for reader in list(self.waiting):
            busy = [each for each in (*self.reading, *self.ended) if each.source == reader.source]
            if len(busy) < self.together:
                self.waiting.remove(reader)
                self.queue.open_task(reader.source, reader.name, next(iter(reader.rows), 0))
                self.reading.append(reader)
        pending = {
            name: min(hours)
            for source, name in enumerate(self.names)
            if (hours := [next(iter(r.rows), 0) for r in self.waiting if r.source == source])
        }
        self.queue.set_pending(pending, is_last=not self.waiting)

    def step(self, reader: Reader) -> bool:
        if reader in self.ended:
            settled = self.queue.settle(reader.source, reader.name, 0)
            if settled:
                self.ended.remove(reader)
                self.lease()
            return settled
        if not reader.is_decoding:
            reader.is_decoding = self.queue.reserve(reader.source, reader.name, 0)
            return reader.is_decoding
        reader.is_decoding = False
        if reader.rows:
            chunk = reader.chunk(self.queue.chunk_rows(reader.source))
            self.largest[reader.source] = max(self.largest[reader.source], chunk.size.bytes)
            self.queue.put(reader.source, reader.name, chunk)
        else:
            self.queue.end_task(reader.source, reader.name, "end")
            self.reading.remove(reader)
            self.ended.append(reader)
        return True

    def pop(self) -> bool:
        frame = self.queue.pop(0)
        if frame is not None:
            self.frames.append(frame)
        return frame is not None

    def check(self) -> None:
        decoding = [0, 0, 0]
        for reader in self.reading:
            decoding[reader.source] += reader.is_decoding
        for source, buffer in enumerate(self.queue._buffers):
            rows = decoding[source] * buffer.room.chunk_rows + buffer.rows
            assert rows <= self.limits.rows_max
            held = sum(
                chunk.size.bytes for queue in buffer._queues.values() for chunk in queue.chunks
            )
            assert held <= max(self.limits.bytes_max, self.largest[source])


Tasks = list[tuple[int, list[int]]]
TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), max_size=100)), min_size=1, max_size=12
)
# From a chunk of two rows for each task that is read, to room for all rows.
ROW_BYTES = 40
ROWS_MAX = st.sampled_from([20, 60, 200, 10_000])


@settings(deadline=None, max_examples=60)
@given(
    TASKS,
    st.integers(1, 4),
    st.integers(1, 40),
    ROWS_MAX,
    st.sampled_from([None, 0, 1]),
    st.randoms(),
)
@example([(0, [0] * 4), (1, [0] * 4)], 1, 3, 10_000, None, random.Random(1))
@example([(0, [0]), (0, [0, 1]), (1, [0, 0, 1]), (1, [1])], 1, 2, 10_000, None, random.Random(2))
def test_the_order_of_rows_is_that_of_their_plan(
    tasks: Tasks,
    together: int,
    minibatch_rows: int,
    rows_max: int,
    hours_together: int | None,
    order: random.Random,
) -> None:
    limits = Limits(minibatch_rows, rows_max, 1 << 20, 7, 1.0, hours_together, 1e9)
    first, second = (_served(tasks, limits, together, order) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("rows_max", "chunk_rows"), [(20, 7), (60, 7), (200, 7), (200, 50)])
def test_more_tasks_than_are_read_at_a_time_wait_in_order_for_little_room(
    rows_max: int, chunk_rows: int
) -> None:
    """Plans of tasks that do not fit; the more rows are waiting, the more a source leads.

    A row takes up to 54 bytes, so the bytes have room for half as many rows more.
    """
    for seed in range(8):
        drawn = random.Random(seed)
        tasks = [
            (drawn.randint(0, 2), drawn.choices(range(6), k=drawn.randint(0, 200)))
            for _ in range(drawn.randint(6, 12))
        ]
        limits = Limits(
            16, rows_max, 80 * rows_max, chunk_rows, 1.0, drawn.choice([None, 0, 1]), 1e9
        )
        first, second = (
            _served(tasks, limits, 2, drawn, weights=(1.0, 1.0, 1.0), queue_unit=rows_max)
            for _ in range(2)
        )
        assert first == second, seed


def _seen(frame: FrameRows) -> tuple[object, ...]:
    rows = [value for batch in frame.batches for value in batch.column(0).to_pylist()]
    return frame.feed, frame.hour, tuple(frame.segments), tuple(rows)


def _served(
    tasks: Tasks, limits: Limits, together: int, order: random.Random, **priorities: Any
) -> list[tuple[object, ...]]:
    """All frames with rows, of readers that take their turns as they are drawn."""
    ordered = sorted((sorted(hours), source) for source, hours in tasks)
    readers = [
        Reader(source, f"{number}", deque(hours), ROW_BYTES)
        for number, (hours, source) in enumerate(ordered)
    ]
    world = World(readers, limits, together, **priorities)
    world.lease()
    idle = 0
    while world.reading or world.ended:
        actors = [*world.reading, *world.ended, None]
        order.shuffle(actors)
        world.now += order.choice([0.0, 0.1, 2.0])
        moved = [world.pop() if actor is None else world.step(actor) for actor in actors]
        idle = 0 if any(moved) else idle + 1
        world.now += 2.0 if idle else 0.0  # a partial minibatch is due
        # Without one, rows may have moved that made room: once more, then nothing ever will.
        assert idle < 3, "everybody waits for everybody"
    while world.pop():
        pass
    return [_seen(frame) for frame in world.frames if frame.rows]


# Room: the bounds hold at every step, and whatever is asked for comes in the end ---------------

FEW_TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), max_size=30)), min_size=1, max_size=12
)
BOUNDS = st.fixed_dictionaries(
    {
        "minibatch_rows": st.integers(1, 40),
        "rows_max": st.integers(1, 30),
        "bytes_max": st.sampled_from([100, 400, 10_000]),
        "chunk_rows": st.integers(1, 12),
    }
)
# A minibatch needs more rows than there may be, and three readers share the room for one.
NARROW = {"minibatch_rows": 2, "rows_max": 1, "bytes_max": 100, "chunk_rows": 1}


@settings(deadline=None, max_examples=60)
@given(FEW_TASKS, st.integers(1, 5), st.sampled_from([1, 40]), BOUNDS, st.integers(0, 2**32))
@example([(0, [0]), (0, [0]), (0, [0])], 3, 1, NARROW, 0)
@example([(0, [0, 1]), (0, [1, 2]), (0, [2])], 3, 40, NARROW, 1)
@example([(0, [0]), (1, [0]), (2, [0])], 1, 40, NARROW, 2)
@example([(0, []), (0, []), (0, []), (0, [1])], 4, 1, NARROW, 88)
def test_bounds_hold_and_every_row_leaves(
    tasks: Tasks, together: int, row_bytes: int, bounds: dict[str, int], seed: int
) -> None:
    order, limits = random.Random(seed), Limits(**bounds, flush_seconds=1.0)
    ordered = sorted((source, sorted(hours)) for source, hours in tasks)
    readers = [
        Reader(source, f"{number}", deque(hours), row_bytes)
        for number, (source, hours) in enumerate(ordered)
    ]
    world = World(readers, limits, together)
    wanted = [sum(len(hours) for source, hours in tasks if source == at) for at in range(3)]
    world.lease()
    idle = 0
    while world.reading or world.ended:
        actors = [*world.reading, *world.ended, None]
        first = order.randrange(len(actors))
        # Who is drawn goes first; if that one waits, the others do: some one must be able to.
        world.now += 0.01
        for actor in actors[first:] + actors[:first]:
            if world.pop() if actor is None else world.step(actor):
                idle = 0
                break
        else:
            world.now += 2.0  # a partial minibatch is due
            # Without one, rows may have moved that made room: once more, then nothing ever will.
            idle = 0 if world.pop() else idle + 1
            assert idle < 2, "everybody waits for everybody"
        world.check()
    world.queue.set_pending({}, is_last=True)
    while world.pop():
        pass
    found = [0, 0, 0]
    for frame in world.frames:
        for source, rows in frame.segments:
            found[source] += rows
    assert found == wanted
    strict = limits.rows_max >= together + 2 and limits.bytes_max == 10_000 and row_bytes == 1
    if strict and len(tasks) <= together:
        hours = [frame.hour for frame in world.frames if frame.rows and frame.feed == "stream"]
        assert hours == sorted(hours), "with room for all tasks, rows leave in time order"
