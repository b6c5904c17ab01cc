"""Serving buffer: decoded rows of one source, waiting for their turn; bounded in rows and bytes.

Rows of one task keep their order in a task queue. The buffer's head is the task queue with the
earliest hour, so a task that is ahead cannot block an earlier one. No chunk is decoded before there
is room for it. Not thread-safe: `PrioritisedQueue` guards all buffers of an executor with one lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.mixture.queue.room import NOTHING, Room, Size

Token = Callable[[], object]  # makes a task's position, which is opaque here


@dataclass(frozen=True, eq=False)
class BufferedChunk:
    """Consecutive rows of one task.

    hours: int32[N], never descending. token(k): the task's position after the first k rows, opaque
    here. token_bytes: the memory that the tokens take as long as the chunk is here.
    """

    batch: pa.RecordBatch
    hours: npt.NDArray[np.int32]
    token: Callable[[int], object]
    token_bytes: int = 0

    @property
    def size(self) -> Size:
        size: int = self.batch.get_total_buffer_size()
        return Size(self.batch.num_rows, size + self.hours.nbytes + self.token_bytes)


@dataclass(frozen=True, eq=False)
class TakenRows:
    """Rows taken from a buffer: a slice without a copy, and their task's position after them.

    token: makes that position. bytes: what can be released once the rows are sent; 0 before a
    chunk's last row, since a slice keeps its whole chunk in memory.
    """

    task: Hashable
    batch: pa.RecordBatch | None
    rows: int
    hour: int
    token: Token
    bytes: int = 0


@dataclass
class TaskQueue:
    """The waiting chunks of one task. `hour` is the hour of its next row, as far as known.

    cursor: how many rows of the first chunk were taken. taken, rows: how many of all its rows so
    far. end: the token of a task that was read to its end; None before that.
    """

    hour: int
    chunks: deque[BufferedChunk] = field(default_factory=deque)
    cursor: int = 0
    taken: int = 0
    rows: int = 0
    end: object | None = None

    @property
    def last_hour(self) -> int:
        """The earliest hour that the task's next chunk may have."""
        return int(self.chunks[-1].hours[-1]) if self.chunks else self.hour

    def rows_of(self, hour: int) -> int:
        """Waiting rows up to an hour."""
        rows, first = 0, self.cursor
        for chunk in self.chunks:
            if chunk.hours[first] > hour:
                break
            rows += _end_of(chunk.hours, np.int32(hour)) - first
            first = 0
        return rows

    def head_run(self, hour: int) -> int:
        """Rows up to an hour, which is not before that of the head, in the first chunk."""
        return _end_of(self.chunks[0].hours, np.int32(hour)) - self.cursor


def _end_of(hours: npt.NDArray[np.int32], hour: np.int32) -> int:
    """How many hours of an ascending array are not after an hour of the same type.

    With another type, the whole array would be converted first.
    """
    return len(hours) if hours[-1] <= hour else int(hours.searchsorted(hour, side="right"))


def _always(position: object) -> Token:
    return lambda: position


class ServingBuffer:
    def __init__(self, room: Room) -> None:
        self.rows = 0
        self.room = room
        self.takes_turns = False
        self._queues: dict[Hashable, TaskQueue] = {}
        self._waiting: set[Hashable] = set()  # tasks that ask for room
        self._counted: tuple[int, int] | None = None  # an hour, and its waiting rows

    def open_task(self, task: Hashable, hour: int) -> None:
        """Expect chunks of a task whose first row has this hour or a later one."""
        self._queues[task] = TaskQueue(hour)
        self.room.open(task)

    def ask(self, task: Hashable) -> None:
        self._waiting.add(task)

    def begin(self, task: Hashable) -> bool:
        """Take the room that the task has asked for; False when there is none yet."""
        if not self._may_begin(task):
            return False
        self._waiting.discard(task)
        self.room.begin(task)
        return True

    def put(self, task: Hashable, chunk: BufferedChunk) -> None:
        """Append rows to their task's queue; there may be none of them."""
        self.room.arrived(task, chunk.size if chunk.batch.num_rows else NOTHING)
        if not chunk.batch.num_rows:
            return
        queue = self._queues[task]
        if not queue.chunks:
            queue.hour = int(chunk.hours[0])
        queue.chunks.append(chunk)
        queue.rows += chunk.batch.num_rows
        self.rows += chunk.batch.num_rows
        self._counted = None

    def end_task(self, task: Hashable, token: object) -> None:
        """No further chunk comes; `token` says that the task is at its end."""
        self.room.arrived(task, NOTHING)
        self.room.end(task)
        self._queues[task].end = token

    @property
    def open_tasks(self) -> int:
        return sum(queue.end is None for queue in self._queues.values())

    def reading(self) -> dict[Hashable, int]:
        """The hour of the next row, as far as known, of each task whose place is not given away."""
        return {
            task: queue.hour for task, queue in self._queues.items() if self.room.is_placed(task)
        }

    def hour(self) -> int | None:
        """The earliest hour that is waiting here or may still come; None when nothing is open.

        Tasks whose rows cannot get room before others have left do not count.
        """
        behind = self._held_up()
        hours = [
            queue.hour
            for task, queue in self._queues.items()
            if queue.chunks or (queue.end is None and task not in behind)
        ]
        return min(hours, default=None)

    def is_coming(self, hour: int, pending: int | None) -> bool:
        """Whether rows of this hour or an earlier one may still be coming.

        A task whose next chunk has no room before rows have left does not count. pending: the hour
        of the task that will be opened next, once there is a place for it.
        """
        any_hour = pending is not None and pending <= hour
        if any(
            queue.end is None and (any_hour or queue.last_hour <= hour) and self._may_move(task)
            for task, queue in self._queues.items()
        ):
            return True
        return any_hour and self.room.has_place

    def _may_move(self, task: Hashable) -> bool:
        """Whether a task can continue now. What is being decoded may leave room for others."""
        return task not in self._waiting or self.room.is_decoding or self._may_begin(task)

    def waiting(self, hour: int) -> int:
        """Rows up to this hour that are waiting here."""
        if self._counted is None or self._counted[0] != hour:
            self._counted = hour, sum(queue.rows_of(hour) for queue in self._queues.values())
        return self._counted[1]

    def available(self, hour: int) -> int:
        """Rows up to this hour that can be taken in one slice: those of the first task queue."""
        queue = self._head(hour)
        return queue[1].head_run(hour) if queue else 0

    def take(self, hour: int, rows_max: int) -> TakenRows:
        found = self._head(hour)
        if found is None:
            raise LookupError(f"no row up to hour {hour} is waiting")
        task, queue = found
        chunk = queue.chunks[0]
        first_hour = int(chunk.hours[queue.cursor])
        rows = min(rows_max, queue.head_run(hour))
        batch = chunk.batch.slice(queue.cursor, rows)
        queue.cursor += rows
        queue.taken += rows
        token: Token = partial(chunk.token, queue.cursor)
        self.rows -= rows
        if self._counted is not None:
            counted, waiting = self._counted
            self._counted = (hour, waiting - rows) if counted == hour else None
        self.room.leave(task, Size(rows, 0))
        size = 0
        if queue.cursor == chunk.batch.num_rows:
            size = chunk.size.bytes
            queue.chunks.popleft()
            queue.cursor = 0
            # Without a next chunk the last row's hour is the earliest that may still come.
            queue.hour = int(queue.chunks[0].hours[0] if queue.chunks else chunk.hours[-1])
            if queue.end is not None and not queue.chunks:
                token = _always(queue.end)
                del self._queues[task]
        else:
            queue.hour = int(chunk.hours[queue.cursor])
        return TakenRows(task, batch, rows, first_hour, token, size)

    def take_ended(self) -> list[TakenRows]:
        ended = [
            TakenRows(task, None, 0, queue.hour, _always(queue.end))
            for task, queue in self._queues.items()
            if queue.end is not None and not queue.chunks
        ]
        for taken in ended:
            del self._queues[taken.task]
        return ended

    def _head(self, hour: int) -> tuple[Hashable, TaskQueue] | None:
        """The task queue whose head is the earliest of those that are not after an hour.

        Of several of one hour the first; if `takes_turns`, that of which the smallest share is
        taken: partitions of a slice have rows of the same time.
        """
        heads = [each for each in self._queues.items() if each[1].chunks and each[1].hour <= hour]
        return min(heads, key=lambda each: (each[1].hour, self._turn(each[1])), default=None)

    def _turn(self, queue: TaskQueue) -> float:
        return queue.taken / queue.rows if self.takes_turns else 0.0

    def _may_begin(self, task: Hashable) -> bool:
        """Whether there is room; among tasks without rows, the earliest hour comes first."""
        if not self.room.may_begin(task):
            return False
        hour = self._queues[task].hour
        return bool(self._queues[task].chunks) or all(
            self._queues[other].chunks or self._queues[other].hour >= hour
            for other in self._waiting
        )

    def _held_up(self) -> frozenset[Hashable]:
        """Tasks without rows that can get room only once rows of others have left."""
        if not self._waiting or self.room.is_decoding:
            return frozenset()
        empty = frozenset(task for task in self._waiting if not self._queues[task].chunks)
        return frozenset() if any(map(self._may_begin, empty)) else empty
