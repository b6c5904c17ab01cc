"""Whoever is faster: one executor gives the same rows in the same minibatches and order."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.queue_world import Reader, World

from forebay.mixture.queue.queue import FrameRows, Limits

Tasks = list[tuple[int, list[int]]]
TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), max_size=100)), min_size=1, max_size=12
)
# From a chunk of two rows for each task that is read, to room for all rows.
ROW_BYTES = 40
ROWS_MAX = st.sampled_from([20, 60, 200, 10_000])


@settings(deadline=None, max_examples=60)
@given(
    TASKS,
    st.integers(1, 4),
    st.integers(1, 40),
    ROWS_MAX,
    st.sampled_from([None, 0, 1]),
    st.randoms(),
)
@example([(0, [0] * 4), (1, [0] * 4)], 1, 3, 10_000, None, random.Random(1))
@example([(0, [0]), (0, [0, 1]), (1, [0, 0, 1]), (1, [1])], 1, 2, 10_000, None, random.Random(2))
def test_the_order_of_rows_is_that_of_their_plan(
    tasks: Tasks,
    together: int,
    minibatch_rows: int,
    rows_max: int,
    hours_together: int | None,
    order: random.Random,
) -> None:
    limits = Limits(minibatch_rows, rows_max, 1 << 20, 7, 1.0, hours_together, 1e9)
    first, second = (_served(tasks, limits, together, order) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("rows_max", "chunk_rows"), [(20, 7), (60, 7), (200, 7), (200, 50)])
def test_more_tasks_than_are_read_at_a_time_wait_in_order_for_little_room(
    rows_max: int, chunk_rows: int
) -> None:
    """Plans of tasks that do not fit; the more rows are waiting, the more a source leads.

    A row takes up to 54 bytes, so the bytes have room for half as many rows more.
    """
    for seed in range(8):
        drawn = random.Random(seed)
        tasks = [
            (drawn.randint(0, 2), drawn.choices(range(6), k=drawn.randint(0, 200)))
            for _ in range(drawn.randint(6, 12))
        ]
        limits = Limits(
            16, rows_max, 80 * rows_max, chunk_rows, 1.0, drawn.choice([None, 0, 1]), 1e9
        )
        first, second = (
            _served(tasks, limits, 2, drawn, weights=(1.0, 1.0, 1.0), queue_unit=rows_max)
            for _ in range(2)
        )
        assert first == second, seed


def _seen(frame: FrameRows) -> tuple[object, ...]:
    rows = [value for batch in frame.batches for value in batch.column(0).to_pylist()]
    return frame.feed, frame.hour, tuple(frame.segments), tuple(rows)


def _served(
    tasks: Tasks, limits: Limits, together: int, order: random.Random, **priorities: Any
) -> list[tuple[object, ...]]:
    """All frames with rows, of readers that take their turns as they are drawn."""
    ordered = sorted((sorted(hours), source) for source, hours in tasks)
    readers = [
        Reader(source, f"{number}", deque(hours), ROW_BYTES)
        for number, (hours, source) in enumerate(ordered)
    ]
    world = World(readers, limits, together, **priorities)
    world.lease()
    idle = 0
    while world.reading or world.ended:
        actors = [*world.reading, *world.ended, None]
        order.shuffle(actors)
        world.now += order.choice([0.0, 0.1, 2.0])
        moved = [world.pop() if actor is None else world.step(actor) for actor in actors]
        idle = 0 if any(moved) else idle + 1
        world.now += 2.0 if idle else 0.0  # a partial minibatch is due
        # Without one, rows may have moved that made room: once more, then nothing ever will.
        assert idle < 3, "everybody waits for everybody"
    while world.pop():
        pass
    return [_seen(frame) for frame in world.frames if frame.rows]
