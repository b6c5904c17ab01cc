"""Room in a queue: the bounds hold at every step, and whatever is asked for comes in the end."""

from __future__ import annotations

import random
from collections import deque

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.queue_world import Reader, World

from forebay.mixture.queue.queue import Limits

Tasks = list[tuple[int, list[int]]]
TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), max_size=30)), min_size=1, max_size=12
)
BOUNDS = st.fixed_dictionaries(
    {
        "minibatch_rows": st.integers(1, 40),
        "rows_max": st.integers(1, 30),
        "bytes_max": st.sampled_from([100, 400, 10_000]),
        "chunk_rows": st.integers(1, 12),
    }
)
# A minibatch needs more rows than there may be, and three readers share the room for one.
NARROW = {"minibatch_rows": 2, "rows_max": 1, "bytes_max": 100, "chunk_rows": 1}


@settings(deadline=None, max_examples=60)
@given(TASKS, st.integers(1, 5), st.sampled_from([1, 40]), BOUNDS, st.integers(0, 2**32))
@example([(0, [0]), (0, [0]), (0, [0])], 3, 1, NARROW, 0)
@example([(0, [0, 1]), (0, [1, 2]), (0, [2])], 3, 40, NARROW, 1)
@example([(0, [0]), (1, [0]), (2, [0])], 1, 40, NARROW, 2)
@example([(0, []), (0, []), (0, []), (0, [1])], 4, 1, NARROW, 88)
def test_bounds_hold_and_every_row_leaves(
    tasks: Tasks, together: int, row_bytes: int, bounds: dict[str, int], seed: int
) -> None:
    order, limits = random.Random(seed), Limits(**bounds, flush_seconds=1.0)
    ordered = sorted((source, sorted(hours)) for source, hours in tasks)
    readers = [
        Reader(source, f"{number}", deque(hours), row_bytes)
        for number, (source, hours) in enumerate(ordered)
    ]
    world = World(readers, limits, together)
    wanted = [sum(len(hours) for source, hours in tasks if source == at) for at in range(3)]
    world.lease()
    idle = 0
    while world.reading or world.ended:
        actors = [*world.reading, *world.ended, None]
        first = order.randrange(len(actors))
        # Who is drawn goes first; if that one waits, the others do: some one must be able to.
        world.now += 0.01
        for actor in actors[first:] + actors[:first]:
            if world.pop() if actor is None else world.step(actor):
                idle = 0
                break
        else:
            world.now += 2.0  # a partial minibatch is due
            # Without one, rows may have moved that made room: once more, then nothing ever will.
            idle = 0 if world.pop() else idle + 1
            assert idle < 2, "everybody waits for everybody"
        world.check()
    world.queue.set_pending({}, is_last=True)
    while world.pop():
        pass
    found = [0, 0, 0]
    for frame in world.frames:
        for source, rows in frame.segments:
            found[source] += rows
    assert found == wanted
    strict = limits.rows_max >= together + 2 and limits.bytes_max == 10_000 and row_bytes == 1
    if strict and len(tasks) <= together:
        hours = [frame.hour for frame in world.frames if frame.rows and frame.feed == "stream"]
        assert hours == sorted(hours), "with room for all tasks, rows leave in time order"
