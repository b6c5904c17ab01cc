"""Priorities and floors by hand, and a buffer's rows and hours one by one."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from support.there import there

from forebay.mixture.queue.buffer import BufferedChunk, ServingBuffer
from forebay.mixture.queue.floor import FlooredPriority
from forebay.mixture.queue.priority import priority, take
from forebay.mixture.queue.room import Room, Size


def test_equation_four() -> None:
    assert (priority(1.0, 0), priority(3.0, 0, 7.0)) == (0.5, 1.5)
    assert priority(2.0, 5, 5.0) == pytest.approx(2 / (1 + math.exp(-1)))
    assert priority(1.0, 1) == pytest.approx(1 / (1 + math.exp(-1)))
    assert take([], [], 1) == []


def test_what_is_owed_starts_at_nothing_and_is_no_more_than_what_waits() -> None:
    floored, queued = FlooredPriority([100.0, 1.0], [0, 1], [0.0, 0.25]), [1_000, 1_000]
    first = floored.take(queued, 3)
    assert first == [(0, 3)], "three quarters of a row are none"
    floored.served(queued, first)
    assert floored.take(queued, 1) == [(1, 1)]
    floored.served(queued, [(1, 1)])
    assert floored.take(queued, 4) == [(1, 1), (0, 3)]
    floored.served(queued, [(1, 4)])  # more than its share: no debt
    assert floored.take(queued, 4) == [(1, 1), (0, 3)]
    floored = FlooredPriority([100.0, 1.0], [0, 1], [0.0, 0.5])
    floored.served([100, 100], [(0, 20)])  # owes ten
    assert floored.take([100, 3], 10) == [(1, 3), (0, 7)]
    assert floored.take([100, 100], 4) == [(1, 4)], "no more than is asked for"


def test_two_floors_at_once_and_a_group_of_several_buffers() -> None:
    floored = FlooredPriority([100.0, 1.0, 2.0, 1.0], [0, 1, 1, 2], [0.0, 0.25, 0.5])
    taken = dict(floored.take([50, 50, 50, 50], 8))
    assert (taken, floored.take([0, 0, 0, 5], 8)) == ({0: 2, 2: 2, 3: 4}, [(3, 5)])
    assert (
        sum(rows for _, rows in FlooredPriority([1.0] * 2, [0, 1], [0.5, 0.5]).take([9, 9], 6)) == 6
    )


def chunk(hours: list[int], first: int = 0) -> BufferedChunk:
    batch = pa.record_batch([pa.array(range(first, first + len(hours)), pa.int64())], names=["row"])
    return BufferedChunk(batch, np.array(hours, np.int32), lambda served: first + served)


def test_a_buffer_knows_the_hour_of_every_task_s_next_row() -> None:
    buffer = ServingBuffer(Room(Size(100, 1 << 20), 100, 2))
    assert (buffer.hour(), buffer.reading(), buffer.open_tasks) == (None, {}, 0)
    buffer.open_task("a", 3)
    buffer.open_task("b", 1)
    assert (buffer.hour(), buffer.reading(), buffer.open_tasks) == (1, {"a": 3, "b": 1}, 2)
    buffer.put("b", chunk([2, 2, 5]))
    buffer.put("b", chunk([6], 3))
    assert buffer.reading() == {"a": 3, "b": 2}
    assert (buffer.hour(), buffer.available(2), buffer.available(1), buffer.rows) == (2, 2, 0, 4)
    taken = buffer.take(2, 1)
    assert (taken.task, taken.rows, taken.hour, taken.token()) == ("b", 1, 2, 1)
    assert (there(taken.batch).column(0).to_pylist(), buffer.available(2), buffer.rows) == (
        [0],
        1,
        3,
    )
    assert buffer.take(2, 9).rows == 1, "rows of one hour only"
    assert buffer.reading() == {"a": 3, "b": 5}
    buffer.take(5, 1)
    assert buffer.reading()["b"] == 6, "of the next chunk"
    buffer.take(6, 1)
    assert buffer.reading()["b"] == 6, "no row earlier than the last one can come"
    assert buffer.rows == 0
    with pytest.raises(LookupError):
        buffer.take(6, 1)


def test_a_task_that_ended_leaves_with_its_last_row_or_alone() -> None:
    buffer = ServingBuffer(Room(Size(100, 1 << 20), 100, 2))
    for task in ("a", "b", "c"):
        buffer.open_task(task, 4)
    buffer.put("a", chunk([4, 4]))
    buffer.end_task("a", "end of a")
    buffer.end_task("b", "end of b")
    assert (buffer.open_tasks, buffer.reading()) == (1, {"a": 4, "b": 4, "c": 4})
    assert buffer.room.settle("a")
    assert buffer.reading() == {"b": 4, "c": 4}, "another task is read in place of the first"
    (ended,) = buffer.take_ended()
    assert (ended.task, ended.batch, ended.rows, ended.hour) == ("b", None, 0, 4)
    assert (ended.token(), buffer.take(4, 1).token()) == ("end of b", 1)
    assert (buffer.take(4, 1).token(), buffer.take_ended()) == ("end of a", [])
    buffer.end_task("c", "end of c")
    assert buffer.hour() is None, "nothing can come any more"
    assert [taken.token() for taken in buffer.take_ended()] == ["end of c"]


def test_no_room_is_kept_free_where_no_other_task_can_come() -> None:
    alone = Room(Size(1000, 100), 10, 1)
    alone.open("a")
    alone.begin("a")
    alone.arrived("a", Size(10, 22))  # the next chunk counts as 44 bytes
    assert alone.may_begin("a")


def test_waiting_rows_are_those_that_can_still_be_taken() -> None:
    chance, buffer = random.Random(1), ServingBuffer(Room(Size(10_000, 1 << 20), 100, 3))
    for task in range(3):
        buffer.open_task(task, 0)
    left: Counter[int] = Counter()
    last = [0, 0, 0]
    for hour in range(4):
        for task in range(3):
            hours = sorted(chance.choices([hour, hour + 1, hour + 2], k=chance.randint(1, 9)))
            hours = [max(each, last[task]) for each in hours]
            last[task] = hours[-1]
            buffer.put(task, chunk(hours))
            left.update(hours)
            now = there(buffer.hour())
            assert buffer.waiting(now) == left[now]
        while left[hour]:
            assert buffer.waiting(hour) == left[hour]
            left[hour] -= buffer.take(hour, chance.randint(1, 5)).rows
    assert buffer.rows == left.total()
