"""Positions: which of two is further, and where a chunk's rows are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.tasks import Chunk, Position, TaskProgress, further

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
