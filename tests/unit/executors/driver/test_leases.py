"""The lease table: shares, horizons, and which reports of an epoch still count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import InfrastructureError
from forebay.executors.driver.leases import LeaseTable, TaskState

ONE, TWO = 101, 102  # epochs


def table(
    hours: Sequence[int],
    sources: Sequence[int] | None = None,
    partitions: Sequence[int] = (),
    align_hours: int = 2,
    reading_max: int | None = None,
) -> LeaseTable:
    of = sources or [0] * len(hours)
    made = LeaseTable(
        np.array(hours, np.int32),
        np.array(of, np.int32),
        max(of) + 1,
        partitions,
        align_hours=align_hours,
        attempts_max=3,
    )
    if reading_max is not None:
        made.reading_max = [reading_max] * (max(of) + 1)
    return made


def held(leases: LeaseTable, epoch: int) -> list[int]:
    """Tasks of an epoch whose rows are not all used."""
    return sorted(leases._held.get(epoch, ()))


def at(row: int, *, ended: bool = False) -> TaskProgress:
    return TaskProgress(position=Position(0, row), rows_read=row, ended=ended)


def states(leases: LeaseTable) -> list[TaskState]:
    return [TaskState(int(state)) for state in leases.state]


def test_hours_may_repeat_but_not_fall() -> None:
    assert table([0, 0, 1]).count(TaskState.PENDING) == 3
    with pytest.raises(ValueError, match="ordered by hour"):
        table([0, 1, 0])


def test_one_executor_reads_two_tasks_of_a_source_in_time_order() -> None:
    leases = table([0, 0, 3, 100])
    assert (leases.lease(ONE, 1), leases.lease(ONE, 1)) == ([0, 1], [])
    leases.read(ONE, 0)
    assert leases.lease(ONE, 1) == [2]
    leases.read(ONE, 1)
    assert leases.lease(ONE, 1) == [3], "a single executor knows no horizon"
    assert (leases.reading(ONE), held(leases, ONE)) == ({0: 2}, [0, 1, 2, 3])


@given(waiting=st.integers(1, 99), executors=st.integers(1, 5), partitions=st.integers(1, 80))
@example(waiting=70, executors=1, partitions=70)
def test_a_fair_share_of_what_may_be_read(waiting: int, executors: int, partitions: int) -> None:
    leases, most = table([0] * waiting, partitions=[partitions]), max(2, min(partitions, 64))
    assert len(leases.lease(ONE, executors)) == min(most, -(-waiting // executors))


def test_the_next_hour_of_each_source_is_that_of_what_is_not_leased() -> None:
    leases = table([0, 0, 1, 4, 6], [0, 1, 0, 0, 1])
    assert (leases.pending_hours(), leases.lease(1, 1)) == ({0: 0, 1: 0}, [0, 2, 1, 4])
    assert leases.pending_hours() == {0: 4}
    leases.fenced(1, {1: at(3, ended=True)})
    assert leases.pending_hours() == {0: 0, 1: 6}, "what came back is earlier"


def test_several_executors_stay_within_the_horizon_of_the_earliest_open_row() -> None:
    leases = table([0, 2, 3, 5, 6])
    assert leases.lease(ONE, 2) == [0], "half of the two tasks up to hour 0 + 2"
    assert (leases.lease(TWO, 2), leases.lease(TWO, 2)) == ([1], [])
    leases.advance(ONE, 0, 1)  # hour 1 + 2
    assert leases.lease(TWO, 2) == [2]
    leases.advance(TWO, 0, 9)  # not its task
    leases.advance(ONE, 0, 0)  # an older report
    leases.read(TWO, 1)
    assert leases.lease(TWO, 2) == []
    leases.advance(ONE, 0, 3)
    assert leases.lease(TWO, 2) == [3]
    leases.read(ONE, 0)  # the earliest row not read is of hour 3 now, and then of hour 5
    leases.advance(ONE, 0, 0)
    assert leases.lease(ONE, 2) == []
    leases.read(TWO, 2)
    assert leases.lease(ONE, 2) == [4]


def test_the_horizon_is_that_of_the_earliest_task_that_waits() -> None:
    leases = table([0, 0, 3, 3])
    leases.restore({0: at(5, ended=True)})
    assert leases.lease(ONE, 2) == [1]


def test_what_came_back_waits_up_to_the_horizon_too() -> None:
    leases = table([0, 2, 2])
    assert (leases.lease(ONE, 1), leases.lease(TWO, 1)) == ([0, 1], [2])
    leases.fenced(TWO, {})
    leases.read(ONE, 1)
    assert leases.lease(103, 2) == [2]


def test_the_rules_say_how_many_are_read_at_a_time() -> None:
    assert table([0, 0, 0], reading_max=1).lease(ONE, 1) == [0]
    assert table([0, 0, 0], reading_max=3).lease(ONE, 1) == [0, 1, 2]


def test_a_late_report_of_a_task_that_waits_again_changes_nothing() -> None:
    leases = table([0])
    leases.lease(ONE, 1)
    leases.use(0, at(5))
    leases.fenced(ONE, {})
    assert leases.use(0, at(4)) == at(5)
    assert leases.progress[0] == at(5)


def test_the_last_tasks_are_leased_whatever_their_hours() -> None:
    leases = table([0, 50])
    leases.lease(ONE, 2)
    leases.read(ONE, 0)
    assert leases.lease(TWO, 2) == [1]


def test_a_lease_is_held_by_its_epoch_and_attempt_only() -> None:
    leases = table([0, 0])
    (row,) = leases.lease(ONE, 2)
    assert leases.holds(ONE, row, 1)
    assert not leases.holds(ONE, row, 2)
    assert not leases.holds(TWO, row, 1)
    assert not leases.holds(ONE, 1, 0), "a task that nobody holds"
    leases.lose(ONE)
    assert not leases.holds(ONE, row, 1)
    assert leases.lease(ONE, 1) == []
    assert held(leases, ONE) == [row], "until the trainer has answered"


def test_a_task_may_fail_as_often_as_the_rules_say() -> None:
    leases = table([0])
    may_retry = []
    for number, epoch in enumerate((11, 12, 13), start=1):
        assert leases.lease(epoch, 1) == [0]
        assert (leases.holds(epoch, 0, number), leases.holds(epoch, 0, number + 1)) == (True, False)
        may_retry.append(leases.fail(0))
        leases.fenced(epoch, {})
        assert not leases.holds(epoch, 0, number)
    assert may_retry == [True, True, False]
    assert leases.failures[0] == 3


def test_a_task_is_read_used_and_sealed() -> None:
    leases = table([0, 0])
    leases.lease(ONE, 1)
    assert leases.use(0, at(5)) is None
    assert leases.use(0, at(9, ended=True)) == at(5)
    assert leases.use(0, at(7)) == at(9, ended=True), "an older report changes nothing"
    assert leases.progress[0] == at(9, ended=True)
    assert (states(leases), held(leases, ONE)) == ([TaskState.USED, TaskState.READING], [1])
    leases.seal({0: at(9, ended=True)})
    assert states(leases) == [TaskState.SEALED, TaskState.READING]
    assert not leases.is_sealed
    leases.read(ONE, 1)
    leases.read(ONE, 0)  # late
    leases.seal({1: at(4)})
    assert states(leases) == [TaskState.SEALED, TaskState.READ]
    leases.seal({1: at(8, ended=True)})
    assert leases.is_sealed
    assert [leases.count(state) for state in TaskState] == [0, 0, 0, 0, 2]


def test_rows_that_nobody_could_have_read_are_refused() -> None:
    leases = table([0])
    with pytest.raises(InfrastructureError, match="without a lease"):
        leases.use(0, at(1))


def test_a_report_of_another_epoch_reads_nothing() -> None:
    leases = table([0])
    leases.lease(ONE, 1)
    leases.read(TWO, 0)
    assert states(leases) == [TaskState.READING]


def test_a_fenced_epoch_gives_its_tasks_back_from_where_the_trainer_stands() -> None:
    leases = table([0, 1, 2, 3, 9])
    leases.lease(ONE, 1)
    leases.advance(ONE, 0, 8)
    leases.fenced(ONE, {0: at(3), 1: at(6, ended=True), 4: at(1)})
    assert states(leases)[:2] == [TaskState.PENDING, TaskState.USED]
    assert (leases.progress[0], leases.progress[1]) == (at(3), at(6, ended=True))
    assert 4 not in leases.progress, "it was not this epoch's"
    assert held(leases, ONE) == []
    assert leases.lease(TWO, 2) == [0], "first what came back, and only up to its own hour + 2"
    assert (leases.lease(TWO, 2), leases.attempts.tolist()) == ([2], [2, 1, 1, 0, 0])


def test_what_came_back_is_leased_again_in_order_with_what_is_left() -> None:
    leases = table([0, 1, 2, 3])
    assert leases.lease(ONE, 1) == [0, 1]
    leases.fenced(ONE, {})
    assert leases.lease(TWO, 1) == [0, 1]
    leases.read(TWO, 0)
    leases.read(TWO, 1)
    assert leases.lease(TWO, 1) == [2, 3]
    leases.fenced(TWO, {})
    assert leases.lease(103, 1) == [0, 1], "read, but not all of it used"


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.integers(1, 4), st.data())
def test_leases_lie_within_the_horizon(hours: list[int], align: int, data: st.DataObject) -> None:
    hours.sort()
    leases, open_hours = table(hours, align_hours=align, reading_max=1), dict(enumerate(hours))
    reading: list[tuple[int, int]] = []
    for epoch in data.draw(st.lists(st.integers(1, 3), max_size=30)):
        if data.draw(st.booleans()) and reading:
            done = reading.pop(0)
            leases.read(*done)
            del open_hours[done[1]]
        horizon = min(open_hours.values(), default=0) + align
        for row in leases.lease(epoch, 3):
            assert hours[row] <= horizon
            reading.append((epoch, row))
