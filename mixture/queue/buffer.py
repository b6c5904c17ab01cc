"""Serving buffer: decoded rows of one source, waiting for their turn; bounded in rows and bytes.

Rows of one task keep their order in a task queue. The buffer's head is the task queue with the
earliest hour, so that a task that is ahead cannot block an earlier one. Not thread-safe:
`PrioritisedQueue` guards all buffers of an executor with one lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, eq=False)
class BufferedChunk:
    """Consecutive rows of one task.

    hours: int32[N], never descending. token(k): the task's position after the first k rows, opaque
    here.
    """

    batch: pa.RecordBatch
    hours: npt.NDArray[np.int32]
    token: Callable[[int], object]


@dataclass(frozen=True, eq=False)
class TakenRows:
    """Rows taken from a buffer: a slice without copy, and its task's position after them."""

    task: Hashable
    batch: pa.RecordBatch | None
    rows: int
    hour: int
    token: object


@dataclass
class TaskQueue:
    """The waiting chunks of one task. `hour` is the hour of its next row, as far as known.

    cursor: rows of the first chunk that were taken. end: the token of a task that was read to its
    end, None before.
    """

    hour: int
    chunks: deque[BufferedChunk] = field(default_factory=deque)
    cursor: int = 0
    end: object | None = None

    def head_run(self) -> int:
        """Rows at the head that share the head's hour; there is a chunk."""
        hours = self.chunks[0].hours
        end = int(np.searchsorted(hours, hours[self.cursor], side="right"))
        return end - self.cursor


class ServingBuffer:
    """Waiting rows of one source."""

    def __init__(self, rows_max: int, bytes_max: int) -> None:
        """Set the bounds.

        A task whose queue is empty may always add one chunk: others may wait for it. A chunk's
        bytes count until its last row is taken: a slice keeps its parent alive.
        """
        self.rows = 0
        self.bytes = 0
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._queues: dict[Hashable, TaskQueue] = {}

    def open_task(self, task: Hashable, hour: int) -> None:
        """Expect chunks of a task whose first row has this hour or a later one."""
        self._queues[task] = TaskQueue(hour)

    def has_room(self, task: Hashable, chunk: BufferedChunk) -> bool:
        """Whether the chunk may be added now."""
        if not self._queues[task].chunks:
            return True
        fits_rows = self.rows + chunk.batch.num_rows <= self._rows_max
        return fits_rows and self.bytes + _size(chunk) <= self._bytes_max

    def put(self, task: Hashable, chunk: BufferedChunk) -> None:
        """Append rows to their task's queue."""
        queue = self._queues[task]
        if not queue.chunks:
            queue.hour = int(chunk.hours[0])
        queue.chunks.append(chunk)
        self.rows += chunk.batch.num_rows
        self.bytes += _size(chunk)

    def end_task(self, task: Hashable, token: object) -> None:
        """No further chunk comes; `token` says that the task is at its end."""
        self._queues[task].end = token

    @property
    def is_within_bounds(self) -> bool:
        """Whether no task had to exceed the bounds."""
        return self.rows <= self._rows_max and self.bytes <= self._bytes_max

    @property
    def open_tasks(self) -> int:
        """Tasks that may still add rows."""
        return sum(queue.end is None for queue in self._queues.values())

    def reading(self) -> dict[Hashable, int]:
        """The hour of the next row of each task that is still being read, as far as known."""
        return {task: queue.hour for task, queue in self._queues.items() if queue.end is None}

    def hour(self) -> int | None:
        """The earliest hour that is waiting here or may still come; None when nothing is open."""
        hours = [queue.hour for queue in self._queues.values() if queue.chunks or queue.end is None]
        return min(hours, default=None)

    def available(self, hour: int) -> int:
        """Rows of this hour that can be taken at once: those of its first task queue."""
        queue = self._head(hour)
        return queue[1].head_run() if queue else 0

    def take(self, hour: int, rows_max: int) -> TakenRows:
        """Remove up to `rows_max` rows of the hour, as one slice."""
        found = self._head(hour)
        if found is None:
            raise LookupError(f"no row of hour {hour} is waiting")
        task, queue = found
        chunk = queue.chunks[0]
        rows = min(rows_max, queue.head_run())
        batch = chunk.batch.slice(queue.cursor, rows)
        queue.cursor += rows
        token = chunk.token(queue.cursor)
        self.rows -= rows
        if queue.cursor == chunk.batch.num_rows:
            self._drop_chunk(queue)
            if queue.end is not None and not queue.chunks:
                token = queue.end
                del self._queues[task]
        else:
            queue.hour = int(chunk.hours[queue.cursor])
        return TakenRows(task, batch, rows, hour, token)

    def take_ended(self) -> list[TakenRows]:
        """Remove tasks that ended and have no row waiting."""
        ended = [
            TakenRows(task, None, 0, queue.hour, queue.end)
            for task, queue in self._queues.items()
            if queue.end is not None and not queue.chunks
        ]
        for taken in ended:
            del self._queues[taken.task]
        return ended

    def _head(self, hour: int) -> tuple[Hashable, TaskQueue] | None:
        for task, queue in self._queues.items():
            if queue.chunks and queue.hour == hour:
                return task, queue
        return None

    def _drop_chunk(self, queue: TaskQueue) -> None:
        chunk = queue.chunks.popleft()
        self.bytes -= _size(chunk)
        queue.cursor = 0
        # Without a next chunk the last row's hour is the earliest that may still come.
        queue.hour = int(queue.chunks[0].hours[0] if queue.chunks else chunk.hours[-1])


def _size(chunk: BufferedChunk) -> int:
    size: int = chunk.batch.get_total_buffer_size()
    return size
