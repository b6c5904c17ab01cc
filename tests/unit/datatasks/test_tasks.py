"""Positions: which of two is further, and where a chunk's rows are."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.windows import Interval
from forebay.datatasks.plans.plan import SourcePlan
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, TaskProgress, further

PROGRESS = st.builds(
    TaskProgress,
    position=st.builds(Position, st.integers(0, 1), st.integers(0, 2)),
    rows_read=st.integers(0, 2),
    ended=st.booleans(),
)


@given(PROGRESS, PROGRESS)
def test_the_further_position_wins_and_the_first_of_equals(
    one: TaskProgress, other: TaskProgress
) -> None:
    def key(each: TaskProgress) -> tuple[Position, int, bool]:
        return each.position, each.rows_read, each.ended

    assert further(one, other) is (other if key(other) > key(one) else one)
    assert further(None, other) is other


def test_rows_of_a_chunk_have_positions_and_its_end_comes_after_them() -> None:
    chunk = Chunk(
        batch=pa.record_batch({"n": [1, 2]}),
        row_ids=np.array([5, 6]),
        parts=np.array([0, 1]),
        rows=np.array([7, 0]),
        hours=np.zeros(2, np.int32),
        end=Position(1, 4),
    )
    assert [chunk.position(row) for row in range(4)] == [(0, 7), (1, 0), (1, 4), (1, 4)]


def test_what_tasks_plans_and_rows_are_unless_it_is_said() -> None:
    start = TaskProgress(position=Position(0, 0))
    assert (start.rows_read, start.dead_rows, start.ended) == (0, 0, False)
    now = datetime(2026, 3, 1, tzinfo=UTC)
    row = {"hour": 0, "partition": "", "ranges": [], "rows": None, "cut": False}
    task = DataTask.of_row(row, "a/0", "a", "2026-03-01", Interval(now, now))
    assert (task.generation, task.hour_base) == (1, 0)
    assert DataTask.model_validate(task.model_dump(exclude={"hour_base"})).hour_base == 0
    plan = {"stream": "a", "source": "a", "feed": "batch", "tasks": 0, "files": 0, "rows": 0}
    assert SourcePlan.model_validate(plan | {"data_from": now, "data_to": now}).hour_base == 0
    assert DeadRow(position=Position(0, 0), location={}, reason="bad").rows == 1
