"""Slices of an open window: which of them a task is released with. Pure.

Slice k of a window is the time [start + k·slice, start + (k+1)·slice). What a stream published in
it is planned when it is over, and batch rows are released in proportion to the time that has gone
by, so that both feeds mix all the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.plans.manifests import MANIFEST_SCHEMA
from forebay.datatasks.tasks import Chunk, DataTask

_HOUR = MANIFEST_SCHEMA.get_field_index("hour")
_LAST = MANIFEST_SCHEMA.get_field_index("last")


@dataclass(frozen=True)
class Slices:
    """Slices of the time [start, end); the last one may be shorter."""

    start: datetime
    end: datetime
    length: timedelta

    @property
    def count(self) -> int:
        return ceil((self.end - self.start) / self.length)

    def over(self, now: datetime) -> int:
        """How many of them are over."""
        if now >= self.end:
            return self.count
        return max(0, (now - self.start) // self.length)

    def ends_at(self, number: int) -> datetime:
        """The end of a slice, counted from 0."""
        return min(self.end, self.start + (number + 1) * self.length)


def of_stream(tasks: pa.Table, number: int) -> pa.Table:
    """Tasks of a stream (MANIFEST_SCHEMA) that are released with a slice, with all their rows."""
    return _with_slices(tasks, *2 * [np.full(tasks.num_rows, number, np.int32)])


def of_batch(tasks: pa.Table, first: int, count: int) -> pa.Table:
    """Batch tasks, in order of time, spread over a window in proportion to their rows.

    Where only reading can tell a task's rows, all tasks count as equally large, and the rows of
    each are released together. first: no earlier slice. count: of the window's slices.
    """
    known = not tasks["rows"].null_count
    rows = np.asarray(tasks["rows"], np.int64) if known else np.ones(tasks.num_rows, np.int64)
    upto = np.cumsum(rows)
    begins = _slice_of(upto - rows, upto[-1:], first, count)
    # Of its last row, not of the row behind it.
    last = _slice_of(np.maximum(upto - 1, upto - rows), upto[-1:], first, count)
    return _with_slices(tasks, begins, np.maximum(begins, last) if known else begins)


def _slice_of(
    before: npt.NDArray[np.int64], total: npt.NDArray[np.int64], first: int, count: int
) -> npt.NDArray[np.int32]:
    """The slice of rows that have so many before them."""
    found = (before * count // np.maximum(total, 1)).astype(np.int32)
    return np.clip(found, min(first, count - 1), count - 1)


def slices_of_rows(task: DataTask, chunk: Chunk) -> npt.NDArray[np.int32]:
    """The slice that releases each row of a chunk, int32[N]: by its place in the task.

    The place is that in the task's ranges: rows of them that are of other windows count too.
    """
    last = task.hour if task.last is None else task.last
    if last == task.hour:
        return np.full(len(chunk.parts), task.hour, np.int32)
    sizes = np.array([each.end - each.first for each in task.ranges], np.int64)
    firsts = np.array([each.first for each in task.ranges], np.int64)
    before = np.cumsum(sizes) - sizes
    place = before[chunk.parts] + chunk.rows - firsts[chunk.parts]
    share = place * (last - task.hour + 1) // max(1, int(sizes.sum()))
    released = task.hour + share.astype(np.int32)
    return np.clip(released, task.hour, last)


def _with_slices(
    tasks: pa.Table, first: npt.NDArray[np.int32], last: npt.NDArray[np.int32]
) -> pa.Table:
    tasks = tasks.set_column(_HOUR, MANIFEST_SCHEMA.field(_HOUR), pa.array(first))
    return tasks.set_column(_LAST, MANIFEST_SCHEMA.field(_LAST), pa.array(last))
