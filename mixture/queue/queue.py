"""The prioritised queue of a data executor: from serving buffers to minibatches of one feed.

Rows leave in time order: only buffers whose head has the earliest hour of all buffers and of all
tasks still being read are candidates; among them the priority decides, subject to the floors. Rows
move to one of two assemblies, batch or stream, and a full assembly leaves as one frame. They move
only when the receiver has room, so that the newest rows can still win. Priority decides row by row
which rows a minibatch has, however they were cut into chunks and tasks; those of one source that it
decides about together are put side by side.

While a window grows there is no earliest hour: a fresh row never waits for history. All rows up to
a horizon, which the stream has reached, are candidates, and the priority alone decides between
sources; of each source the earliest come first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from forebay.config.specs.datasets import Feed
from forebay.mixture.queue.buffer import BufferedChunk, ServingBuffer, TakenRows, Token
from forebay.mixture.queue.floor import FlooredPriority, Runs
from forebay.mixture.queue.room import Room, Size


class QueueClosedError(Exception):
    """The queue's epoch is over: nothing can be taken or added any more."""


@dataclass(frozen=True)
class QueueSources:
    """What the queue serves: for each source its name, feed, weight and group (stream)."""

    names: Sequence[str]
    feeds: Sequence[Feed]
    weights: Sequence[float]
    groups: Sequence[int]
    floors: Sequence[float]
    queue_unit: float = 1.0


@dataclass(frozen=True)
class Limits:
    """Bounds of the queue: `rows_max` and `bytes_max` of each source, from before decoding on.

    chunk_rows: the most rows that are decoded at a time. flush_seconds: how long a partial
    minibatch may wait for rows. hours_together: how many hours later than its first row a row of
    the same minibatch may be; when only later rows are left, the minibatch waits no longer, and
    those rows wait for it to leave. None: any. settle_seconds: how long the rows of an hour may
    wait for others of that hour that are being read; their order is decided only then, or once all
    that can come are here.
    """

    minibatch_rows: int
    rows_max: int
    bytes_max: int
    chunk_rows: int
    flush_seconds: float
    hours_together: int | None = None
    settle_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class FrameRows:
    """Rows of one minibatch; or no rows, only the positions that tasks have reached.

    segments: (source, rows) in row order. tokens: each task's position after these rows.
    """

    feed: Feed
    hour: int
    segments: list[tuple[int, int]]
    batches: list[pa.RecordBatch]
    tokens: dict[Hashable, object]

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.segments)


@dataclass
class _Assembly:
    rows: int = 0
    begun: int = 0  # at which move of rows
    since: float = 0.0
    hour: int = 0
    segments: list[tuple[int, int]] = field(default_factory=list)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    tokens: dict[Hashable, Token] = field(default_factory=dict)
    left: list[tuple[int, Hashable, int]] = field(default_factory=list)  # source, task, bytes

    def add(self, source: int, taken: TakenRows, now: float, begun: int) -> None:
        if not self.rows:
            self.since, self.hour, self.begun = now, taken.hour, begun
        self.tokens[taken.task] = taken.token
        if taken.batch is None:
            return
        self.rows += taken.rows
        if taken.bytes:
            self.left.append((source, taken.task, taken.bytes))
        self.batches.append(taken.batch)
        if self.segments and self.segments[-1][0] == source:
            self.segments[-1] = (source, self.segments[-1][1] + taken.rows)
        else:
            self.segments.append((source, taken.rows))

    def frame(self, feed: Feed) -> FrameRows:
        """All of it. Only now is each task's position needed, which is expensive to make."""
        tokens = {task: token() for task, token in self.tokens.items()}
        return FrameRows(feed, self.hour, self.segments, self.batches, tokens)


class PrioritisedQueue:
    """Buffers of all sources under one lock. Task runners put, one server thread pops.

    What they call raises QueueClosedError once the epoch has ended.
    """

    def __init__(
        self,
        sources: QueueSources,
        limits: Limits,
        readers: Mapping[str, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Empty buffers, no open tasks. `readers`: how many tasks of a source are read at once."""
        self._sources = sources
        self._limits = limits
        self._clock = clock
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        # Those who wait for room, each with a condition: otherwise every frame would wake all
        # threads.
        self._asking: dict[tuple[int, Hashable], threading.Condition] = {}
        bound = Size(limits.rows_max, limits.bytes_max)
        self._buffers = [
            ServingBuffer(Room(bound, limits.chunk_rows, readers.get(name, 1)))
            for name in sources.names
        ]
        self._priority = FlooredPriority(
            sources.weights, sources.groups, sources.floors, sources.queue_unit
        )
        # In declared order: a set would have a different order in each process.
        feeds = dict.fromkeys(sources.feeds)
        self._assemblies: dict[Feed, _Assembly] = {feed: _Assembly() for feed in feeds}
        self._settling = (-1, 0.0)  # an hour, and until when its rows wait for others
        self._moves = 0
        self._pending: list[int | None] = [None for _ in sources.names]
        self._is_last = False
        self._horizon: int | None = None
        self._closed = False

    # For task runners -----------------------------------------------------------------------

    def open_task(self, source: int, task: Hashable, hour: int) -> None:
        """Start a task: rows of later hours wait until it has reached them or ended."""
        with self._changed:
            self._check_open()
            self._buffers[source].open_task(task, hour)

    def chunk_rows(self, source: int) -> int:
        with self._changed:
            self._check_open()
            return self._buffers[source].room.chunk_rows

    def reserve(self, source: int, task: Hashable, timeout_seconds: float) -> bool:
        """Take room for the task's next chunk, before it is decoded. False if none came in time."""
        with self._changed:
            self._check_open()
            buffer = self._buffers[source]
            buffer.ask(task)
            if buffer.begin(task):
                return True
            self._changed.notify_all()  # rows of others may have to leave before it
            granted = self._asking[source, task] = threading.Condition(self._lock)
            is_granted = granted.wait_for(
                lambda: (source, task) not in self._asking, timeout_seconds
            )
            self._asking.pop((source, task), None)
            self._check_open()
            return is_granted

    def put(self, source: int, task: Hashable, chunk: BufferedChunk) -> None:
        """Add the rows that room was reserved for; there may be none."""
        with self._changed:
            self._check_open()
            self._buffers[source].put(task, chunk)
            self._grant()

    def end_task(self, source: int, task: Hashable, token: object) -> None:
        with self._changed:
            self._check_open()
            self._buffers[source].end_task(task, token)
            self._grant()

    def settle(self, source: int, task: Hashable, timeout_seconds: float) -> bool:
        """Wait until another task may be read in place of one that ended; False if not in time."""
        with self._changed:
            self._check_open()
            is_settled = self._changed.wait_for(
                lambda: self._closed or self._buffers[source].room.settle(task), timeout_seconds
            )
            self._check_open()
            return is_settled

    # For the server -------------------------------------------------------------------------

    def pop(self, timeout_seconds: float) -> FrameRows | None:
        """The next minibatch, or only positions; None if there was nothing in time."""
        deadline = self._clock() + timeout_seconds
        with self._changed:
            while True:
                self._check_open()
                moved = self._fill()
                frame = self._next_frame()
                if moved or frame is not None:
                    self._grant()
                if frame is not None:
                    return frame
                now = self._clock()
                if now >= deadline:
                    return None
                self._changed.wait(self._next_look(now, deadline) - now)

    # For the owner --------------------------------------------------------------------------

    def set_pending(
        self, hours: Mapping[str, int], *, is_last: bool, horizon: int | None = None
    ) -> None:
        """Set what is not opened here yet.

        hours: by source, the hour of the earliest task that will be. is_last: whether no task is
        waiting for any executor: then the rest leaves without delay. horizon: of a window that
        grows, up to which of its slices, which are its hours, rows may leave.
        """
        with self._changed:
            self._horizon = horizon
            for buffer in self._buffers:
                buffer.takes_turns = horizon is not None
            self._pending = [hours.get(name) for name in self._sources.names]
            self._is_last = is_last
            self._changed.notify_all()

    def close(self) -> None:
        """End the epoch: rows that were not popped are dropped."""
        with self._changed:
            self._closed = True
            self._buffers = []
            self._assemblies = {}
            for granted in self._asking.values():
                granted.notify_all()
            self._asking.clear()
            self._changed.notify_all()

    def queued(self) -> dict[str, int]:
        with self._changed:
            rows = [buffer.rows for buffer in self._buffers]
        return dict(zip(self._sources.names, rows, strict=False))

    def reading(self) -> dict[Hashable, int]:
        """The hour reached by each task that is still being read, or that no other may replace."""
        with self._changed:
            return {
                task: hour for buffer in self._buffers for task, hour in buffer.reading().items()
            }

    # Inside the lock ------------------------------------------------------------------------

    def _grant(self) -> None:
        """Something has changed: give room to those who wait for it, as far as there is any."""
        for (source, task), granted in list(self._asking.items()):
            if self._buffers[source].begin(task):
                del self._asking[source, task]
                granted.notify_all()
        self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise QueueClosedError

    def _candidates(self) -> tuple[int, list[int]]:
        """The earliest hour, and by source, its rows that can leave now (0: none)."""
        if self._horizon is not None:
            return self._horizon, [buffer.available(self._horizon) for buffer in self._buffers]
        hours = [hour for buffer in self._buffers if (hour := buffer.hour()) is not None]
        if not hours:
            return 0, [0] * len(self._buffers)
        hour = min(hours)
        return hour, [buffer.available(hour) for buffer in self._buffers]

    def _fill(self) -> bool:
        """Move rows to the assemblies until one is full or no row may leave; whether any moved."""
        now, moved_some = self._clock(), False
        while (room := self._rows_wanted()) > 0:
            hour, available = self._candidates()
            if not any(available) or any(self._is_left(a, hour) for a in self._assemblies.values()):
                break
            if not self._is_settled(hour, now):
                break
            queued = [buffer.waiting(hour) for buffer in self._buffers]
            runs = self._carry_out(self._priority.take(queued, room), hour, available, now)
            moved_some = True
            self._priority.served(queued, runs)
        for source, buffer in enumerate(self._buffers):
            for ended in buffer.take_ended():
                self._add(source, ended, now)
        return moved_some

    def _carry_out(self, plan: Runs, hour: int, available: list[int], now: float) -> Runs:
        """Move planned rows until others are to be waited for; the runs that were moved.

        available: rows of each source up to the end of its first chunk. An ended chunk may have
        made room for rows that are to be waited for.
        """
        taken: dict[int, list[TakenRows]] = {}
        left, is_settled = list(available), True
        moved: Runs = []
        part: Runs = []
        for source, rows in plan:
            missing = rows
            while missing and is_settled:
                some = min(missing, left[source])
                part.append((source, some))
                missing -= some
                left[source] -= some
                if not left[source]:
                    self._take(part, hour, taken)
                    moved += part
                    part = []
                    is_settled = self._is_settled(hour, now)
                    left = [buffer.available(hour) for buffer in self._buffers]
        self._take(part, hour, taken)
        for source, slices in taken.items():
            for each in slices:
                self._add(source, each, now)
        return moved + part

    def _take(self, runs: Runs, hour: int, taken: dict[int, list[TakenRows]]) -> None:
        for source, rows in _by_source(runs).items():
            taken.setdefault(source, []).append(self._buffers[source].take(hour, rows))

    def _add(self, source: int, taken: TakenRows, now: float) -> None:
        self._moves += 1
        self._assemblies[self._sources.feeds[source]].add(source, taken, now, self._moves)

    def _is_settled(self, hour: int, now: float) -> bool:
        """Whether the order of an hour's rows may be decided: all that can come are here.

        Otherwise whatever is decoded first would leave first, and the same rows would give a
        different model each time. An hour waits only once, and only for `settle_seconds`.
        """
        if self._horizon is not None:
            return True
        if self._settling[0] != hour:
            self._settling = (hour, now + self._limits.settle_seconds)
        return now >= self._settling[1] or not any(
            buffer.is_coming(hour, pending)
            for buffer, pending in zip(self._buffers, self._pending, strict=True)
        )

    def _rows_wanted(self) -> int:
        return self._limits.minibatch_rows - max(a.rows for a in self._assemblies.values())

    def _next_frame(self) -> FrameRows | None:
        for feed, assembly in sorted(self._assemblies.items(), key=self._rank):
            if self._is_due(feed, assembly):
                self._assemblies[feed] = _Assembly()
                for source, task, size in assembly.left:
                    self._buffers[source].room.leave(task, Size(0, size))
                return assembly.frame(feed)
        return None

    def _rank(self, item: tuple[Feed, _Assembly]) -> tuple[bool, bool, int]:
        """Old ones first, then full ones: whether a partial one is due depends on what was read.

        While a window grows, the one that was begun first.
        """
        _, assembly = item
        if self._horizon is not None:
            return False, False, assembly.begun
        is_partial = assembly.rows < self._limits.minibatch_rows
        return not self._is_old(assembly), is_partial, assembly.begun

    def _is_due(self, feed: Feed, assembly: _Assembly) -> bool:
        if assembly.rows >= self._limits.minibatch_rows:
            return True
        if not assembly.tokens:
            return False
        if not assembly.rows:
            # Sending only positions costs little, but rows that can leave now carry them for free.
            return self._is_idle()
        now = self._clock()
        if self._limits.hours_together is not None:
            hour, available = self._candidates()
            if any(available) and self._is_left(assembly, hour) and self._is_settled(hour, now):
                return True
        if now - assembly.since >= self._limits.flush_seconds:
            return not self._can_grow(feed) and self._is_awaited(assembly, now)
        return self._is_last and self._is_drained()

    def _next_hour(self) -> int:
        """The earliest hour that is here or on its way; later tasks without a place are not."""
        pending = (
            hour
            for buffer, hour in zip(self._buffers, self._pending, strict=True)
            if buffer.room.has_place
        )
        hours = [*(buffer.hour() for buffer in self._buffers), *pending]
        return min((hour for hour in hours if hour is not None), default=0)

    def _is_left(self, assembly: _Assembly, hour: int) -> bool:
        most = self._limits.hours_together if self._horizon is None else None
        return most is not None and assembly.rows > 0 and hour - assembly.hour > most

    def _is_idle(self) -> bool:
        return not any(self._candidates()[1])

    def _can_grow(self, feed: Feed) -> bool:
        available = self._candidates()[1]
        return any(
            rows
            for rows, other in zip(available, self._sources.feeds, strict=True)
            if other == feed
        )

    def _is_awaited(self, assembly: _Assembly, now: float) -> bool:
        """Whether a partial minibatch has nothing to wait for: no row is here or still coming."""
        return self._is_old(assembly) or (
            self._is_idle() and self._is_settled(self._next_hour(), now)
        )

    def _is_old(self, assembly: _Assembly) -> bool:
        settle = self._limits.settle_seconds if self._horizon is None else 0.0
        return self._clock() - assembly.since >= self._limits.flush_seconds + settle

    def _is_drained(self) -> bool:
        return all(not buffer.rows and not buffer.open_tasks for buffer in self._buffers)

    def _next_look(self, now: float, deadline: float) -> float:
        """When something may become due without a notification; times in the past are ignored."""
        limits = self._limits
        moments = [deadline, self._settling[1]]
        for assembly in self._assemblies.values():
            if assembly.rows:
                flush = assembly.since + limits.flush_seconds
                moments += [flush, flush + limits.settle_seconds]
        return min(moment for moment in moments if moment > now)


def _by_source(runs: Runs) -> dict[int, int]:
    """Rows of each source, in the order of their first runs."""
    rows: dict[int, int] = {}
    for source, count in runs:
        rows[source] = rows.get(source, 0) + count
    return rows
