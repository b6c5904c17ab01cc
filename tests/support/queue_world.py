"""A queue with readers that run in any order, and a trainer that takes rows in between."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

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
