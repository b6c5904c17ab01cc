"""Room for the rows of one source: reserved before rows are decoded, released as they leave.

Tasks are read in parallel, and rows leave in time order, so each task must be able to hold a chunk
at any moment: otherwise those that are ahead would fill the room with rows that wait for others. So
a chunk is only as large as `rows_max` allows for all of them, and what a task lacks to one chunk is
kept free for it. Bytes are known only once a chunk is decoded: until then it counts as twice what
the largest rows so far would take, and the first chunk of a source as all of its room.

Which rows are here must not depend on which thread was faster, because the rows that are here
decide which ones leave next. So no task takes room that another could have had: each has its own
share of the rows, and the next task is opened once there is such a share for it, while those that
are being read count with all of theirs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

_TASK_CHUNKS = 2  # for each task that is being read
_ENDED_CHUNKS = 2  # for tasks that were read to their end, whose rows wait


class Size(NamedTuple):
    rows: int
    bytes: int

    def plus(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)

    def minus(self, other: Size) -> Size:
        """What is left without the other; never below 0."""
        return Size(max(0, self.rows - other.rows), max(0, self.bytes - other.bytes))

    def times(self, count: int) -> Size:
        return Size(self.rows * count, self.bytes * count)

    def divided(self, count: int) -> Size:
        """One of this many equal parts, rounded down."""
        return Size(self.rows // count, self.bytes // count)

    def is_within(self, bound: Size) -> bool:
        return self.rows <= bound.rows and self.bytes <= bound.bytes


NOTHING = Size(0, 0)


class Room:
    """Who holds how much of it. Not thread-safe, like the buffer that it belongs to."""

    def __init__(self, bound: Size, chunk_rows: int, readers: int) -> None:
        """`readers`: the most tasks that are read at a time; a chunk has at most `chunk_rows`."""
        chunks = _TASK_CHUNKS * readers + _ENDED_CHUNKS
        self.held = NOTHING
        self.chunk_rows = max(1, min(chunk_rows, bound.rows // chunks))
        self._bound = bound
        self._task_bound = bound.times(_TASK_CHUNKS).divided(chunks)
        self._readers = readers
        self._row_bytes: float | None = None  # of the chunk with the largest rows so far
        self._shares: dict[Hashable, Size] = {}
        self._places: set[Hashable] = set()  # tasks that are read, until the next one may come
        self._ended: set[Hashable] = set()  # tasks with a place that were read to their end
        self._decoding: dict[Hashable, Size] = {}
        self._lacking: Size | None = None  # None: to be computed again

    @property
    def is_decoding(self) -> bool:
        return bool(self._decoding)

    @property
    def has_place(self) -> bool:
        return len(self._places) < self._readers or any(map(self._may_settle, self._ended))

    def is_placed(self, task: Hashable) -> bool:
        """Whether no other task may be read yet in place of this one."""
        return task in self._places

    def open(self, task: Hashable) -> None:
        self._places.add(task)
        self._lacking = None

    def share(self, task: Hashable) -> Size:
        """What a task holds, including the chunk that is being decoded."""
        return self._shares.get(task, NOTHING)

    def may_begin(self, task: Hashable) -> bool:
        """Whether a chunk of the task may be decoded now.

        A task without rows may take what is kept free: others may be waiting for its rows. If
        nothing at all is held, a chunk may be larger than the room.
        """
        if self.held == NOTHING:
            return True
        wanted = self.held.plus(self._chunk())
        if not wanted.is_within(self._bound):
            return False
        if self.share(task).rows:
            if not self._is_within_its_own(task):
                return False
            wanted = wanted.plus(self._kept_free().minus(self._lack(task)))
        return wanted.is_within(self._bound)

    def begin(self, task: Hashable) -> None:
        self._decoding[task] = self._chunk()
        self._hold(task, self._decoding[task])

    def arrived(self, task: Hashable, size: Size) -> None:
        """The chunk has arrived, with what it really takes: nothing, if it has no rows."""
        self.leave(task, self._decoding.pop(task, NOTHING))
        self._hold(task, size)
        if size.rows:
            self._row_bytes = max(self._row_bytes or 0.0, size.bytes / size.rows)

    def leave(self, task: Hashable, size: Size) -> None:
        self.held = self.held.minus(size)
        self._shares[task] = self.share(task).minus(size)
        if self._shares[task] == NOTHING:
            del self._shares[task]
        self._lacking = None

    def end(self, task: Hashable) -> None:
        self._ended.add(task)
        self._lacking = None

    def settle(self, task: Hashable) -> bool:
        """Give the place of a task that was read to its end to the next one, if it has room."""
        if not self._may_settle(task):
            return False
        self._places.discard(task)
        self._ended.discard(task)
        self._lacking = None
        return True

    def _may_settle(self, task: Hashable) -> bool:
        """Whether there is room for the next task in place of one that has ended.

        Which of several gives its place is of no importance: the same task comes. And no task that
        is being read can take away the room that there is now.
        """
        others = self._readers - len(self._ended)  # they are being read, or will be
        taken = self._task_bound.times(others + 1)
        for each, share in self._shares.items():
            if self._has_ended(each):
                taken = taken.plus(share)
        if not taken.is_within(self._bound):
            return False
        after = self.held.plus(self._kept_free()).plus(self._chunk())
        return self.share(task) == NOTHING or after.is_within(self._bound)

    def _has_ended(self, task: Hashable) -> bool:
        return task in self._ended or task not in self._places

    def _is_within_its_own(self, task: Hashable) -> bool:
        """Whether a task that has rows has room for more of them within its part of the bounds.

        Its bytes are those of whole chunks, until the last row of each is sent.
        """
        share = self.share(task)
        return (
            share.rows + self.chunk_rows <= self._task_bound.rows
            and share.bytes * _TASK_CHUNKS <= self._task_bound.bytes
        )

    def _hold(self, task: Hashable, size: Size) -> None:
        self.held = self.held.plus(size)
        if size != NOTHING:
            self._shares[task] = self.share(task).plus(size)
        self._lacking = None

    def _chunk(self) -> Size:
        if self._row_bytes is None:
            return Size(self.chunk_rows, self._bound.bytes)
        expected = int(2 * self._row_bytes * self.chunk_rows)
        return Size(self.chunk_rows, min(expected, self._bound.bytes))

    def _lack(self, task: Hashable) -> Size:
        return self._chunk().minus(self.share(task))

    def _kept_free(self) -> Size:
        """What all tasks that are being read, and those that may come, lack to one chunk each."""
        if self._lacking is None:
            vacant = max(0, self._readers - len(self._places))
            self._lacking = self._chunk().times(vacant)
            for task in self._places - self._ended:
                self._lacking = self._lacking.plus(self._lack(task))
        return self._lacking
