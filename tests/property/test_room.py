"""Room in a queue: the bounds hold at every step, and whatever is asked for comes in the end."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forebay.mixture.queue.buffer import BufferedChunk
from forebay.mixture.queue.queue import FrameRows, Limits, PrioritisedQueue, QueueSources

FEEDS = ("batch", "stream", "batch")
TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), max_size=30)), min_size=1, max_size=12
)


@dataclass
class Reader:
    """A task as its runner reads it; `row_bytes` of each row is what its encoding takes."""

    source: int
    name: str
    rows: deque[int]
    row_bytes: int
    is_decoding: bool = False
    given: list[int] = field(default_factory=list)

    def chunk(self, rows_max: int) -> BufferedChunk:
        count = min(rows_max, len(self.rows))
        hours = np.array([self.rows.popleft() for _ in range(count)], np.int32)
        batch = pa.record_batch([pa.array(["x" * self.row_bytes] * count)], names=["row"])
        return BufferedChunk(batch, hours, lambda served: served)


class World:
    """Readers in any order, and a trainer that takes a frame now and then."""

    def __init__(self, readers: list[Reader], limits: Limits, together: int) -> None:
        self.limits = limits
        self.waiting = deque(readers)
        self.together = together
        self.reading: list[Reader] = []
        self.ended: list[Reader] = []
        self.frames: list[FrameRows] = []
        names = ["a", "b", "c"]
        sources = QueueSources(names, FEEDS, [1.0, 5.0, 2.0], [0, 1, 2], [0.0, 0.2, 0.0])
        self.queue = PrioritisedQueue(
            sources, limits, dict.fromkeys(names, together), clock=lambda: self.now
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

    def step(self, reader: Reader) -> bool:
        """Let one reader do its next thing; whether it could."""
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
        """Let the trainer ask once."""
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
@given(TASKS, st.integers(1, 5), st.sampled_from([1, 40]), BOUNDS, st.integers(0, 2**32))
@example([(0, [0]), (0, [0]), (0, [0])], 3, 1, NARROW, 0)
@example([(0, [0, 1]), (0, [1, 2]), (0, [2])], 3, 40, NARROW, 1)
@example([(0, [0]), (1, [0]), (2, [0])], 1, 40, NARROW, 2)
@example([(0, []), (0, []), (0, []), (0, [1])], 4, 1, NARROW, 88)
def test_bounds_hold_and_every_row_leaves(
    tasks: list[tuple[int, list[int]]],
    together: int,
    row_bytes: int,
    bounds: dict[str, int],
    seed: int,
) -> None:
    order = random.Random(seed)
    limits = Limits(**bounds, flush_seconds=1.0)
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
    world.queue.set_last(True)
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
