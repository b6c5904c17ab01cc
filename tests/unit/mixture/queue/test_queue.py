"""Serving buffers and the prioritised queue: order in time, bounds, partial minibatches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.there import there

from forebay.mixture.queue.buffer import BufferedChunk
from forebay.mixture.queue.queue import (
    FrameRows,
    Limits,
    PrioritisedQueue,
    QueueClosedError,
    QueueSources,
)

TWO = QueueSources(["old", "new"], ["batch", "stream"], (1.0, 1.0), [0, 1], (0.0, 0.0))


class Clock:
    """Whoever spins looks at it again and again, also where others have the processors."""

    def __init__(self) -> None:
        self.looks: list[float] = []

    def __call__(self) -> float:
        self.looks.append(time.monotonic())
        return self.looks[-1]


def chunk(hours: list[int], first: int = 0) -> BufferedChunk:
    batch = pa.record_batch([pa.array(np.arange(first, first + len(hours)))], names=["row"])
    return BufferedChunk(batch, np.array(hours, np.int32), lambda served: first + served)


def queue(
    minibatch_rows: int = 4,
    rows_max: int = 100,
    flush_seconds: float = 30.0,
    sources: QueueSources = TWO,
    clock: Callable[[], float] = time.monotonic,
    **more: Any,
) -> PrioritisedQueue:
    """Chunks of up to a sixth of the bound, from two readers of each source."""
    limits = Limits(minibatch_rows, rows_max, 1 << 20, rows_max, flush_seconds, **more)
    return PrioritisedQueue(sources, limits, dict.fromkeys(sources.names, 2), clock)


def open_both(served: PrioritisedQueue) -> None:
    for source, task in enumerate("ab"):
        served.open_task(source, task, 0)


def put(served: PrioritisedQueue, source: int, task: str, rows: BufferedChunk) -> None:
    assert served.reserve(source, task, 1)
    served.put(source, task, rows)


def popped(found: FrameRows | None) -> tuple[str, int, list[tuple[int, int]], dict[object, object]]:
    found = there(found)
    assert found.rows == sum(batch.num_rows for batch in found.batches)
    return found.feed, found.hour, found.segments, dict(found.tokens)


def test_rows_go_out_in_time_order_whatever_the_weight() -> None:
    served = queue(sources=replace(TWO, weights=(1.0, 100.0)))
    open_both(served)
    put(served, 1, "b", chunk([1] * 4))
    assert served.pop(0) is None  # task a is at hour 0 and may still bring rows of it
    put(served, 0, "a", chunk([0] * 4 + [1] * 4))
    assert popped(served.pop(0)) == ("batch", 0, [(0, 4)], {"a": 4})
    assert popped(served.pop(0)) == ("stream", 1, [(1, 4)], {"b": 4})
    assert popped(served.pop(0)) == ("batch", 1, [(0, 4)], {"a": 8})


def test_a_task_that_is_ahead_does_not_hold_up_an_earlier_one() -> None:
    served = queue(rows_max=24)
    served.open_task(0, "late", 5)
    served.open_task(0, "early", 0)
    for first in (0, 4):
        put(served, 0, "late", chunk([5] * 4, first))
    assert not served.reserve(0, "late", 0.01), "what is left is kept for other tasks"
    assert served.queued()["old"] == 8
    put(served, 0, "early", chunk([0] * 4, 100))
    assert popped(served.pop(0))[3] == {"early": 104}
    served.end_task(0, "early", "end")
    assert popped(served.pop(0)) == ("batch", 5, [(0, 4)], {"late": 4, "early": "end"})


def test_tokens_follow_the_rows_and_the_end_comes_last() -> None:
    served = queue(minibatch_rows=3)
    served.open_task(0, "a", 0)
    put(served, 0, "a", chunk([0, 0, 0, 0]))
    assert popped(served.pop(0))[3] == {"a": 3}
    served.end_task(0, "a", "end")
    assert served.pop(0) is None  # one row waits for company
    served.open_task(1, "b", 0)
    served.set_pending({}, is_last=True)
    assert served.pop(0) is None  # task b may still bring some
    served.end_task(1, "b", "nothing")
    assert popped(served.pop(0)) == ("batch", 0, [(0, 1)], {"a": "end"})
    assert popped(served.pop(0)) == ("stream", 0, [], {"b": "nothing"})
    served.open_task(1, "empty", 3)
    served.end_task(1, "empty", "nothing")
    assert popped(served.pop(0)) == ("stream", 3, [], {"empty": "nothing"})


def test_a_partial_minibatch_waits_no_longer_than_it_may() -> None:
    served = queue(minibatch_rows=100, flush_seconds=0.1)
    served.open_task(1, "b", 0)
    put(served, 1, "b", chunk([0] * 7))
    started = time.monotonic()
    assert popped(served.pop(5))[2] == [(1, 7)]
    assert 0.05 < time.monotonic() - started < 2


def test_priority_decides_inside_a_hour_and_the_floor_corrects_it() -> None:
    weighted = replace(TWO, weights=(1.0, 2.0))
    served = queue(10, sources=weighted)
    floored = queue(10, sources=replace(weighted, floors=(0.5, 0.0)))
    for each in (served, floored):
        open_both(each)
        put(each, 0, "a", chunk([0] * 40))
        put(each, 1, "b", chunk([0] * 40))
    assert [popped(served.pop(0))[0] for _ in range(8)] == ["stream"] * 4 + ["batch"] * 4
    assert [popped(floored.pop(0))[0] for _ in range(4)].count("batch") == 2


def test_rows_wait_for_room_and_closing_lets_everyone_go() -> None:
    served = queue(minibatch_rows=4, rows_max=24)
    served.open_task(0, "a", 0)
    for first in (0, 4):
        put(served, 0, "a", chunk([0] * 4, first))
    threading.Timer(0.1, served.pop, [1.0]).start()
    assert served.reserve(0, "a", 5)
    served.put(0, "a", chunk([0] * 4, 8))
    assert served.queued() == {"old": 8, "new": 0}
    threading.Timer(0.1, served.close).start()
    with pytest.raises(QueueClosedError):
        served.reserve(0, "a", 5)
    for late in (
        lambda: served.pop(1),
        lambda: served.settle(0, "a", 1),
        lambda: served.put(0, "a", chunk([0])),
        lambda: served.chunk_rows(0),
    ):
        with pytest.raises(QueueClosedError):
            late()


def test_bytes_are_given_back_when_the_last_rows_of_a_chunk_are_sent() -> None:
    served = queue(minibatch_rows=150, rows_max=1_600)
    served.open_task(0, "a", 0)
    put(served, 0, "a", chunk([0] * 400))
    room = served._buffers[0].room
    taken = room.held.bytes
    assert taken >= 400 * 12
    held = []
    for _ in range(2):
        served.pop(0)
        held.append(room.held)
    assert served.pop(0) is None
    assert held == [(250, taken), (100, taken)]
    assert room.held == (0, taken), "a hundred rows wait for company"
    put(served, 0, "a", chunk([0] * 50, 400))
    served.pop(0)
    assert room.held == (0, 0)


@pytest.mark.parametrize("first", ["a", "b"])
def test_tasks_that_ended_make_way_as_far_as_there_is_room_for_the_next(first: str) -> None:
    served, second = queue(minibatch_rows=1, rows_max=24), "ab".replace(first, "")
    for task in ("a", "b"):
        served.open_task(0, task, 0)
    for task in (first, second):
        put(served, 0, task, chunk([0] * 4))
        put(served, 0, task, chunk([0] * 4, 4))
        served.end_task(0, task, "end")
    assert served.settle(0, first, 0.05)
    assert not served.settle(0, second, 0.05), "16 rows wait, and the next task may have 8"
    for _ in range(8):
        served.pop(0)
    assert served.settle(0, second, 0.05)


def test_an_old_partial_minibatch_waits_for_rows_of_its_own_feed_and_of_no_other() -> None:
    now = [0.0]
    served = queue(sources=replace(TWO, weights=(100.0, 1.0)), clock=lambda: now[0])
    open_both(served)
    put(served, 1, "b", chunk([0]))
    assert served.pop(0) is None
    now[0] = 31.0
    put(served, 0, "a", chunk([0] * 4))
    put(served, 1, "b", chunk([0] * 2, 1))
    assert popped(served.pop(0))[0] == "batch"  # more stream rows are there: they may join
    assert popped(served.pop(0))[2] == [(1, 3)]
    now = [0.0]
    served = queue(clock=lambda: now[0])
    open_both(served)
    put(served, 1, "b", chunk([0]))
    assert served.pop(0) is None
    now[0] = 29.9
    assert served.pop(0) is None
    now[0] = 30.0
    put(served, 0, "a", chunk([0] * 8))
    assert (popped(served.pop(0))[2], popped(served.pop(0))[2]) == ([(1, 1)], [(0, 4)])


def test_rows_wait_for_others_of_their_hour_and_once_only() -> None:
    now = [0.0]
    served = queue(2, clock=lambda: now[0], settle_seconds=3.0)
    open_both(served)
    put(served, 1, "b", chunk([0] * 5 + [1] * 4))
    assert served.pop(0) is None, "rows of task a may be on their way"
    put(served, 0, "a", chunk([0] * 5 + [1]))
    order = [popped(served.pop(0))[0] for _ in range(4)]
    assert order == ["batch", "stream", "batch", "stream"], "by priority, not by who came first"
    served.end_task(0, "a", "end")
    assert served.pop(0) is None, "task b is at hour 1 and not at its end"
    now[0] = 3.1
    assert [popped(served.pop(0))[0] for _ in range(3)] == ["stream", "stream", "batch"]


def test_who_has_nothing_to_serve_does_not_spin() -> None:
    clock = Clock()
    served = queue(flush_seconds=0.01, clock=clock, settle_seconds=1e9)
    open_both(served)
    put(served, 1, "b", chunk([0, 0]))
    served.end_task(1, "b", "end")
    put(served, 0, "a", chunk([0, 1]))  # hour 0 is settled, hour 1 is not
    assert served.pop(0.1) is None
    clock.looks.clear()
    assert served.pop(0.2) is None, "rows of hour 1 may be on their way"
    assert len(clock.looks) < 20
    clock.looks.clear()
    served = queue(clock=clock)
    assert served.pop(0.2) is None
    assert clock.looks[-1] - clock.looks[0] >= 0.2
    assert len(clock.looks) < 20


def test_a_next_task_waits_for_room_in_bytes_too() -> None:
    """What two tasks have left waiting would take the room of those that may be read."""
    limits = Limits(4, 10_000, 1 << 20, 16, flush_seconds=30.0)
    served = PrioritisedQueue(TWO, limits, {"old": 2})
    settled = []
    for task in "ab":
        served.open_task(0, task, 0)
        for _ in range(2):
            put(served, 0, task, replace(chunk([0] * 16), token_bytes=100_000))
        served.end_task(0, task, "end")
        settled.append(served.settle(0, task, 0))
    assert settled == [True, False]
    for _ in range(16):
        assert popped(served.pop(0))[2] == [(0, 4)]
    assert served.settle(0, "b", 0)


def test_rows_of_small_tasks_take_turns_with_those_of_others() -> None:
    served, tasks = queue(minibatch_rows=20), [(0, "a", 3), (0, "b", 3), (1, "c", 7)]
    for source, task, rows in tasks:
        served.open_task(source, task, 0)
        put(served, source, task, chunk([0] * rows))
        served.end_task(source, task, "end")
    served.set_pending({}, is_last=True)
    frames = [served.pop(0), served.pop(0)]
    assert sorted(popped(frame)[2:3] for frame in frames) == [([(0, 6)],), ([(1, 7)],)]
    assert all(batch.num_rows for frame in frames if frame for batch in frame.batches)


def test_a_queue_unit_is_one_row_unless_told_otherwise() -> None:
    served = queue(1, sources=replace(TWO, weights=(1.0, 1.2)))
    open_both(served)
    put(served, 0, "a", chunk([0, 0]))
    put(served, 1, "b", chunk([0]))
    assert popped(served.pop(0))[0] == "batch", "of two units the other would be first"


def test_rows_of_hours_far_apart_are_in_no_minibatch_together() -> None:
    served = queue(50, hours_together=2)
    open_both(served)
    put(served, 1, "b", chunk([0, 1, 2, 3, 9]))
    served.end_task(1, "b", "end of b")
    assert served.pop(0) is None  # task a is at hour 0 and may still bring rows of it
    put(served, 0, "a", chunk([0, 2, 3, 5, 6]))
    served.end_task(0, "a", "end of a")
    served.set_pending({}, is_last=True)
    frames = [popped(served.pop(0)) for _ in range(6)]
    # What waits in a partial minibatch leaves before rows that are more than two hours later move.
    seen = [(feed, hour, sum(rows for _, rows in segments)) for feed, hour, segments, _ in frames]
    assert seen[:3] == [("stream", 0, 3), ("batch", 0, 2), ("batch", 3, 2)]
    assert seen[3:] == [("stream", 3, 1), ("batch", 6, 1), ("stream", 9, 1)]
    assert (frames[-2][3], frames[-1][3]) == ({"a": "end of a"}, {"b": "end of b"})


def test_rows_of_a_source_are_side_by_side_in_the_minibatch_that_priority_chose() -> None:
    sources = QueueSources(["old", "more"], ["batch", "batch"], [1.0, 1.0], [0, 1], [0.0, 0.0], 1e3)
    served = queue(6, sources=sources)
    made_tokens: list[int] = []

    def token(position: int) -> int:
        made_tokens.append(position)
        return position

    for source in range(2):
        served.open_task(source, f"task {source}", 0)
        rows = chunk([0] * 9, first=100 * source)
        put(served, source, f"task {source}", replace(rows, token=token))
    found = served.pop(0)
    assert popped(found) == ("batch", 0, [(0, 3), (1, 3)], {"task 0": 3, "task 1": 3})
    values = [batch.column(0).to_pylist() for batch in there(found).batches]
    assert values == [[0, 1, 2], [100, 101, 102]]
    assert made_tokens == [3, 3], "not for each of the rows, which priority takes in turns"


@pytest.mark.parametrize("floors", [(0.0, 0.0), (0.0, 0.2)])
@pytest.mark.parametrize("chunk_rows", [1, 3, 8])
def test_it_does_not_matter_how_rows_were_cut(floors: tuple[float, float], chunk_rows: int) -> None:
    def served(rows: int) -> list[tuple[object, ...]]:
        found = queue(64, 10_000, sources=replace(TWO, weights=(10.0, 1.0), floors=floors))
        open_both(found)
        for source, task in enumerate("ab"):
            for first in range(0, 240, rows):
                put(found, source, task, chunk([0] * rows, first))
            assert found.reserve(source, task, 1)
            found.end_task(source, task, "end")
        found.set_pending({}, is_last=True)
        frames = []
        while (frame := found.pop(0)) is not None:
            values = [value for batch in frame.batches for value in batch.column(0).to_pylist()]
            frames.append((*popped(frame), values))
        return frames

    assert served(chunk_rows) == served(240)
