"""When tasks and rows of an open window are released: in order, none too early, all in the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.task_tables import task_table

from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.slices import Slices, of_batch, of_stream, slices_of_rows
from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.tasks import Chunk, DataTask, Position

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
counts = st.lists(st.integers(0, 2_000), min_size=1, max_size=12)


def task_of(table: pa.Table, row: int) -> DataTask:
    values = table.slice(row, 1).to_pylist()[0]
    span = Interval(START, START + HOUR)
    return DataTask.of_row(values, values["task_id"], "history", "w", span)


def slices_of(task: DataTask, chunk_rows: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Of all rows of a task, read in chunks."""
    found, rows = [np.zeros(0, np.int32)], task.rows or 0
    for first in range(0, rows, chunk_rows):
        at = np.arange(first, min(rows, first + chunk_rows), dtype=np.int64)
        hours = np.zeros(len(at), np.int32)
        end = Position(0, int(at[-1]) + 1)
        chunk = Chunk(without_columns(len(at)), at, np.zeros_like(at), at, hours, end)
        found.append(slices_of_rows(task, chunk))
    return np.concatenate(found)


@given(
    length=st.timedeltas(timedelta(seconds=1), timedelta(minutes=10)),
    at=st.timedeltas(timedelta(hours=-1), timedelta(hours=2)),
)
def test_a_slice_is_over_at_its_end_and_the_last_with_the_window(
    length: timedelta, at: timedelta
) -> None:
    slices, now = Slices(START, START + HOUR, length), START + at
    over = slices.over(now)
    assert 0 <= over <= slices.count
    assert (over == slices.count) == (now >= slices.end)
    if over:
        assert slices.ends_at(over - 1) <= now
    if over < slices.count:
        assert now < slices.ends_at(over)
    ends = [slices.ends_at(number) for number in range(slices.count)]
    assert ends == sorted(set(ends))
    assert ends[-1] == slices.end


@given(rows=counts, first=st.integers(0, 400), count=st.integers(1, 360), chunk=st.integers(1, 700))
def test_batch_rows_are_released_in_proportion(
    rows: list[int], first: int, count: int, chunk: int
) -> None:
    """However a task is cut into chunks: after k of n slices, k/n of all rows, but for one task."""
    table = of_batch(task_table("history", [(0, each) for each in rows]), first, count)
    released = [slices_of(task_of(table, row), chunk) for row in range(len(rows))]
    every = np.concatenate(released)
    assert (np.diff(every) >= 0).all(), "in order"
    assert len(every) == sum(rows)
    if not len(every):
        return
    earliest = min(first, count - 1)
    assert every.min() >= earliest
    assert every.max() < count
    for slice_number in range(earliest, count):
        due = sum(rows) * (slice_number + 1) / count
        got = int((every <= slice_number).sum())
        # A task's rows are spread evenly over its own slices, of which the first and the last may
        # be shared with its neighbours.
        slack = 2 * max(rows) / max(1, min(count, 2)) + 1
        assert got >= due - slack
        assert slice_number == earliest or got <= due + slack


@given(rows=counts, count=st.integers(1, 360))
def test_tasks_of_unknown_rows_are_released_one_by_one(rows: list[int], count: int) -> None:
    table = task_table("history", [(0, each) for each in rows])
    at = table.schema.get_field_index("rows")
    unknown = table.set_column(at, table.schema.field(at), pa.nulls(len(rows), pa.int64()))
    found = of_batch(unknown, 0, count)
    hours, last = found["hour"].to_pylist(), found["last"].to_pylist()
    assert hours == last == [number * count // len(rows) for number in range(len(rows))]


def test_a_stream_s_rows_are_released_with_their_slice() -> None:
    table = of_stream(task_table("clicks", [(3, 10), (0, 5)]), 7)
    assert (table["hour"].to_pylist(), table["last"].to_pylist()) == ([7, 7], [7, 7])
    assert slices_of(task_of(table, 0), 4).tolist() == [7] * 10
