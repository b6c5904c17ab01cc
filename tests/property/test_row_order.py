"""Whoever is faster: one executor gives the same rows in the same minibatches and order."""

from __future__ import annotations

import random
from collections import deque

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.queue_world import Reader, World

from forebay.mixture.queue.queue import FrameRows, Limits

TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), max_size=30)), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=40)
@given(TASKS, st.integers(1, 4), st.integers(1, 40), st.sampled_from([None, 0, 1]), st.randoms())
@example([(0, [0] * 4), (1, [0] * 4)], 1, 3, None, random.Random(1))
@example([(0, [0]), (0, [0, 1]), (1, [0, 0, 1]), (1, [1])], 1, 2, None, random.Random(2))
def test_the_order_of_rows_is_that_of_their_plan(
    tasks: list[tuple[int, list[int]]],
    together: int,
    minibatch_rows: int,
    hours_together: int | None,
    order: random.Random,
) -> None:
    limits = Limits(
        minibatch_rows=minibatch_rows,
        rows_max=10_000,
        bytes_max=1 << 20,
        chunk_rows=7,
        flush_seconds=1.0,
        hours_together=hours_together,
        settle_seconds=1e9,
    )
    first, second = (
        [_seen(frame) for frame in _served(tasks, limits, together, order) if frame.rows]
        for _ in range(2)
    )
    assert first == second


def _seen(frame: FrameRows) -> tuple[object, ...]:
    rows = [value for batch in frame.batches for value in batch.column(0).to_pylist()]
    return frame.feed, frame.hour, tuple(frame.segments), tuple(rows)


def _served(
    tasks: list[tuple[int, list[int]]], limits: Limits, together: int, order: random.Random
) -> list[FrameRows]:
    """All frames, of readers that take their turns as they are drawn."""
    ordered = sorted((sorted(hours), source) for source, hours in tasks)
    readers = [
        Reader(source, f"{number}", deque(hours), 1)
        for number, (hours, source) in enumerate(ordered)
    ]
    world = World(readers, limits, together)
    world.lease()
    while world.reading or world.ended:
        actors = [*world.reading, *world.ended, None]
        order.shuffle(actors)
        world.now += order.choice([0.0, 0.1, 2.0])
        moved = [world.pop() if actor is None else world.step(actor) for actor in actors]
        assert any(moved) or world.pop(), "everybody waits for everybody"
    while world.pop():
        pass
    return world.frames
