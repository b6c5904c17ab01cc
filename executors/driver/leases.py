"""Who reads which task: the core of the driver, without I/O. Array rows, no object per task.

A task is *pending*, *reading* (leased, being read), *read* (leased, its rows not all used),
*used* (a step used its last row), *sealed* (inside a checkpoint). Leases belong to an epoch: one
executor in one session. A lost epoch is fenced first; its tasks become pending again only once the
trainer has answered up to which positions their rows were trained on.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from forebay.datatasks.tasks import TaskProgress, further
from forebay.errors import InfrastructureError


class TaskState(IntEnum):
    PENDING, READING, READ, USED, SEALED = range(5)


FAR = 2**31 - 1
_READING_MIN = 2  # tasks of one source that one executor may always read at a time
_PARTITIONS_MAX = 64
_HELD = (TaskState.READING, TaskState.READ)


class LeaseTable:
    """Tasks of one window, by row; those of a source ascend by hour."""

    def __init__(
        self,
        hours: npt.NDArray[np.int32],
        sources: npt.NDArray[np.int32],
        source_count: int,
        partitions: Sequence[int] = (),
        *,
        align_hours: int,
        attempts_max: int,
        horizon: int | None = None,
    ) -> None:
        """All tasks are pending. `partitions`, by source: as many of its tasks are read at a time.

        Partitions of one source hold rows of the same time range: if they were read one after the
        other, they would be served one after the other too.

        align_hours: how far a task may be ahead of the earliest unread row. It applies to several
        executors; a single one serves its rows in time order by itself. horizon: up to which hour
        tasks are leased instead, of a window that grows.

        Raises:
            ValueError: when hours do not ascend.
        """
        self.horizon = horizon
        self.hours = np.zeros(0, np.int32)
        self.sources = np.zeros(0, np.int32)
        self.state = np.zeros(0, np.int8)
        self.attempts = np.zeros(0, np.int32)
        self.failures: Counter[int] = Counter()
        self.progress: dict[int, TaskProgress] = {}
        self._align_hours, self._attempts_max = align_hours, attempts_max
        self.reading_max = [
            max(_READING_MIN, min(count, _PARTITIONS_MAX))
            for count in partitions or [1] * source_count
        ]
        self._at = np.zeros(0, np.int64)  # the hour that each task has been read up to
        self._holder = np.zeros(0, np.int64)
        self._held: dict[int, set[int]] = {}
        self._queues = [np.zeros(0, np.int64) for _ in range(source_count)]
        self._next = [0] * source_count  # from here on in its queue every task is pending
        self._returned: list[list[int]] = [[] for _ in range(source_count)]
        self._lost: set[int] = set()
        self._counts = Counter[TaskState]()
        self.append(hours, sources)

    def append(self, hours: npt.NDArray[np.int32], sources: npt.NDArray[np.int32]) -> None:
        """Further tasks, all pending, with the next row numbers.

        Raises:
            ValueError: when the hours of a source do not ascend.
        """
        first, count = len(self.hours), len(hours)
        self.hours = np.concatenate([self.hours, hours])
        self.sources = np.concatenate([self.sources, sources])
        for source, queue in enumerate(self._queues):
            self._queues[source] = np.append(queue, first + np.flatnonzero(sources == source))
            if np.any(np.diff(self.hours[self._queues[source]][max(0, len(queue) - 1) :]) < 0):
                raise ValueError("tasks must be ordered by hour")
        self.state = np.append(self.state, np.zeros(count, np.int8))
        self.attempts = np.append(self.attempts, np.zeros(count, np.int32))
        self._at = np.append(self._at, hours.astype(np.int64))
        self._holder = np.append(self._holder, np.zeros(count, np.int64))
        self._counts[TaskState.PENDING] += count

    def count(self, state: TaskState) -> int:
        return self._counts[state]

    @property
    def is_sealed(self) -> bool:
        return self._counts[TaskState.SEALED] == len(self.state)

    def end(self, rows: npt.NDArray[np.int64], *, sealed: bool) -> None:
        """Tasks were used to their ends: before the first lease, as another driver knew, or since.

        sealed: whether that is inside a checkpoint.
        """
        for row in rows[self.state[rows] < TaskState.USED].tolist():
            if self.state[row] in _HELD:
                self._held[int(self._holder[row])].discard(row)
            self._move(row, TaskState.USED)
        if sealed:
            used = rows[self.state[rows] == TaskState.USED]
            self.state[used] = TaskState.SEALED
            self._counts[TaskState.USED] -= len(used)
            self._counts[TaskState.SEALED] += len(used)

    def restore(self, positions: Mapping[int, TaskProgress]) -> None:
        """Start from positions that the model holds. Only before the first lease."""
        for row, progress in positions.items():
            self.progress[row] = progress
            if progress.ended:
                self._move(row, TaskState.USED)
        self._queues = [queue[self.state[queue] == TaskState.PENDING] for queue in self._queues]

    def pending_hours(self) -> dict[int, int]:
        """By source, the hour of its earliest pending task; of those that have one."""
        hours = {}
        for source, queue in enumerate(self._queues):
            rows = [*queue[self._next[source] :][:1].tolist(), *self._returned[source][:1]]
            if rows:
                hours[source] = int(min(self.hours[row] for row in rows))
        return hours

    def lease(self, epoch: int, executors: int) -> list[int]:
        """Lease the next tasks to an epoch, a fair share of what `executors` could take."""
        if epoch in self._lost:
            return []
        horizon = FAR if executors <= 1 else self._earliest_open() + self._align_hours
        horizon = horizon if self.horizon is None else self.horizon
        rows: list[int] = []
        for source in range(len(self._queues)):
            waiting = self._waiting(source, horizon)
            free = self.reading_max[source] - self.reading(epoch)[source]
            share = min(free, math.ceil(waiting / max(1, executors)))
            rows += [self._pull(source) for _ in range(share)]
        for row in rows:
            self._move(row, TaskState.READING)
            self._holder[row] = epoch
            self.attempts[row] += 1
        self._held.setdefault(epoch, set()).update(rows)
        return rows

    def reading(self, epoch: int) -> Counter[int]:
        """Tasks that an epoch reads now, by source."""
        return Counter(
            int(self.sources[row])
            for row in self._held.get(epoch, ())
            if self.state[row] == TaskState.READING
        )

    def advance(self, epoch: int, row: int, hour: int) -> None:
        """An epoch has read a task up to an hour; a late report changes nothing."""
        if self._holder[row] == epoch and self.state[row] == TaskState.READING:
            self._at[row] = max(hour, int(self._at[row]))

    def holds(self, epoch: int, row: int, attempt: int) -> bool:
        return (
            epoch not in self._lost
            and row in self._held.get(epoch, ())
            and bool(self.attempts[row] == attempt)
        )

    def read(self, epoch: int, row: int) -> None:
        """An epoch has read a task to its end; a late report changes nothing."""
        if self._holder[row] == epoch and self.state[row] == TaskState.READING:
            self._move(row, TaskState.READ)

    def use(self, row: int, progress: TaskProgress) -> TaskProgress | None:
        """A step used rows of a task. Returns its progress before that.

        Raises:
            InfrastructureError: when rows were used beyond what any lease could have given.
        """
        before = self.progress.get(row)
        after = further(before, progress)
        if after is before:
            return before
        if self.state[row] == TaskState.PENDING:
            raise InfrastructureError(f"rows of task row {row} were used without a lease")
        self.progress[row] = after
        if after.ended and self.state[row] in _HELD:
            self._move(row, TaskState.USED)
            self._held[int(self._holder[row])].discard(row)
        return before

    def seal(self, positions: Mapping[int, TaskProgress]) -> None:
        for row, progress in positions.items():
            self.use(row, progress)
            if progress.ended and self.state[row] == TaskState.USED:
                self._move(row, TaskState.SEALED)

    def fail(self, row: int) -> bool:
        """Count a failure of the task's current lease; whether it may be tried again."""
        self.failures[row] += 1
        return self.failures[row] < self._attempts_max

    def lose(self, epoch: int) -> None:
        """Grant no lease to this epoch and ignore its reports; its tasks wait for a fence."""
        self._lost.add(epoch)

    def fenced(self, epoch: int, taken: Mapping[int, TaskProgress]) -> None:
        """The trainer takes no more rows of the epoch: its tasks continue from `taken`."""
        self._lost.add(epoch)
        for row in sorted(self._held.pop(epoch, ())):
            if row in taken:
                self.progress[row] = further(self.progress.get(row), taken[row])
            self._give_back(row)

    def _give_back(self, row: int) -> None:
        progress = self.progress.get(row)
        if progress is not None and progress.ended:
            self._move(row, TaskState.USED)
            return
        self._move(row, TaskState.PENDING)
        self._at[row] = self.hours[row]
        heapq.heappush(self._returned[int(self.sources[row])], row)

    def _move(self, row: int, state: TaskState) -> None:
        self._counts[TaskState(int(self.state[row]))] -= 1
        self._counts[state] += 1
        self.state[row] = state

    def _earliest_open(self) -> int:
        """The hour of the earliest unread row, as far as known."""
        hours = [
            int(self._at[row])
            for rows in self._held.values()
            for row in rows
            if self.state[row] == TaskState.READING
        ]
        return min([*hours, *self.pending_hours().values()], default=FAR - self._align_hours)

    def _waiting(self, source: int, horizon: int) -> int:
        place = self._next[source]
        queue = self._queues[source]
        fresh = bisect_right(queue, horizon, lo=place, key=lambda row: self.hours[row]) - place
        return fresh + sum(bool(self.hours[row] <= horizon) for row in self._returned[source])

    def _pull(self, source: int) -> int:
        """The earliest pending task of a source; there is one."""
        queue, place = self._queues[source], self._next[source]
        returned = self._returned[source]
        if returned and (place == len(queue) or returned[0] < queue[place]):
            return heapq.heappop(returned)
        self._next[source] += 1
        return int(queue[place])
