"""What planning hands to executors: data tasks, positions inside them, chunks of rows read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay.system.message import Message

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from forebay.config.specs.windows import Interval


class Position(NamedTuple):
    """Where the next unread row of a task is. Ordered: part first, then row.

    Files and log segments: `part` is the index in the task's ranges, `row` the row number inside
    that file. Kafka: `part` is a message's offset, `row` the row inside that message.
    """

    part: int
    row: int


class RowRange(Message):
    """Rows [first, end) of a file, or offsets [first, end) of a partition.

    `path` is relative to the source's root (files), or `topic/partition` (Kafka). `version` is what
    planning saw of it: other content is not read.
    """

    path: str
    first: int
    end: int
    rows: int | None
    size_bytes: int
    version: str = ""


class DataTask(Message):
    """One source, one window, a few row ranges. `task_id` is unique within (window, generation).

    hour: of the task's first row, counted from the start of the window's data: tasks go out in
    this order. hour_base: from there to `data_from`, from where a source counts (see `hours`).
    last: of a window that was opened, where hours are slices: the slice of its last row.
    """

    task_id: str
    source: str
    window: str
    generation: int
    hour: int
    partition: str
    ranges: tuple[RowRange, ...]
    rows: int | None
    cut: bool
    data_from: datetime
    data_to: datetime
    hour_base: int = 0
    last: int | None = None

    @classmethod
    def of_row(
        cls,
        row: Mapping[str, Any],
        task_id: str,
        source: str,
        window: str,
        span: Interval,
        generation: int = 1,
        hour_base: int = 0,
    ) -> DataTask:
        """The task of one row of a task table (TASK_SCHEMA)."""
        return cls(
            task_id=task_id,
            source=source,
            window=window,
            hour=row["hour"],
            partition=row["partition"],
            ranges=tuple(
                RowRange(**{**row_range, "version": row_range["version"] or ""})
                for row_range in row["ranges"]
            ),
            rows=row["rows"],
            cut=row["cut"],
            data_from=span.start,
            data_to=span.end,
            generation=generation,
            hour_base=hour_base,
            last=row.get("last"),
        )


class OffsetsRead(Message):
    """What offsets of a stream turned out to be.

    records: messages, whose rows are served or dead. control: markers of transactions. aborted:
    messages of transactions that were. compacted: those that the topic's cleanup has removed.
    """

    records: int = 0
    control: int = 0
    aborted: int = 0
    compacted: int = 0

    @property
    def total(self) -> int:
        return self.records + self.control + self.aborted + self.compacted

    @property
    def text(self) -> str:
        found = [f"{count:,} {name}" for name, count in self.model_dump().items() if count]
        return " + ".join(found) or "none"

    def plus(self, other: OffsetsRead) -> OffsetsRead:
        return OffsetsRead(**{name: count + getattr(other, name) for name, count in self})


NO_OFFSETS = OffsetsRead()


class TaskProgress(Message):
    """How far a task got: next unread row, rows counted so far, and whether it is at its end.

    The counts are cumulative from the task's start, never from a lease's start.
    late_rows: served rows whose time is before the task's span; odd_timestamps: after it, or of
    files on either side, the first of them at `first_odd`. label_not_known: rows that are neither
    served nor dead, since their label was not known when the run's window ended. offsets: those
    before `position`, where only reading can tell the rows of a stream. first_us, last_us: the
    first and the last time of served rows, in microseconds since 1970 UTC; perhaps of some behind
    `position` too, but not the last publication of a stream. None where no time is known.
    """

    position: Position
    rows_read: int = 0
    dead_rows: int = 0
    late_rows: int = 0
    odd_timestamps: int = 0
    first_odd: str = ""
    label_not_known: int = 0
    offsets: OffsetsRead = NO_OFFSETS
    first_us: int | None = None
    last_us: int | None = None
    ended: bool = False


def further(one: TaskProgress | None, other: TaskProgress) -> TaskProgress:
    if one is None:
        return other
    return max(one, other, key=lambda each: (each.position, each.rows_read, each.ended))


class ReadUnit(Message):
    """Rows [first, end) of a task that are read alone or not at all; `location`: of the first."""

    first: Position
    end: Position
    location: dict[str, str | int]

    @classmethod
    def of_ranges(
        cls,
        task: DataTask,
        position: Position,
        locate: Callable[[Position], dict[str, str | int]],
        borders: Callable[[RowRange], Sequence[int]] = lambda _: (),
    ) -> Iterator[ReadUnit]:
        """Row ranges from the one that holds `position`, parted at `borders`: rows inside of one.

        Not one that a window cuts: nobody knows how many rows of a part of it are in the window.
        """
        for part in range(position.part, len(task.ranges)):
            each = task.ranges[part]
            inside = borders(each) if each.rows == each.end - each.first else ()
            done = bisect_right(inside, position.row) if part == position.part else 0
            first = inside[done - 1] if done else each.first
            for end in chain(inside[done:], [each.end]):
                yield cls(
                    first=Position(part, first if first > each.first else 0),
                    end=Position(part, end) if end < each.end else Position(part + 1, 0),
                    location=locate(Position(part, first)),
                )
                first = end


class DeadRow(Message):
    """A row that cannot be trained on, and why. `rows` > 1 where a whole range is unreadable."""

    position: Position
    location: dict[str, str | int]
    reason: str
    row: str | None = None  # JSON text, as far as the row could be read
    rows: int = 1


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one task, in reading order.

    batch: the asked columns in declared Arrow types (`ARROW_TYPES`), N rows. A float may also be a
        float32 as it is stored.
    row_ids: int64[N], the physical identity of each row (docs/internals/guarantees.md).
    parts, rows: int64[N] each, the position of each row itself.
    hours: int32[N], whole hours from data_from to the row's time, never negative (see `hours`).
    end: the position after the last row and dead row of this chunk.
    dead: rows of the same stretch that could not be decoded, by position.
    outside: int8[N], where a stream is cut by offsets: -1 for a row whose time is before the span,
        1 for one after it, 0 for the others; of files whose metadata are wrong, 1 for both. None
        where all are in it.
    runs: what each offset from the chunk before to `end` is (`offset_runs`), where planning counts
        offsets because only reading can tell the rows; else None.
    published: int64[N], when each row became readable in its stream, in microseconds since 1970
        UTC; the smallest int64 where that is not known; None where the storage never says.
    times: int64[N], when each row happened, likewise, where the source has looked at it to cut its
        windows; else None.
    """

    batch: pa.RecordBatch
    row_ids: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    hours: npt.NDArray[np.int32]
    end: Position
    dead: tuple[DeadRow, ...] = ()
    outside: npt.NDArray[np.int8] | None = None
    runs: npt.NDArray[np.int64] | None = None
    published: npt.NDArray[np.int64] | None = None
    times: npt.NDArray[np.int64] | None = None

    def position(self, row: int) -> Position:
        """The position of row number `row`, or the end of the chunk behind its last row."""
        if row >= len(self.parts):
            return self.end
        return Position(int(self.parts[row]), int(self.rows[row]))
