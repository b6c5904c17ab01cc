"""What the driver answers to failures, and what it shows to people."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.poisons import no_hazards
from support.task_tables import record_tasks
from support.there import there

from forebay.config.specs.jobs import JobSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import FencedError, InfrastructureError, NotKnownError
from forebay.executors.driver.journal import Journal
from forebay.executors.driver.state import DriverState, RegisteredExecutor, Session
from forebay.executors.driver.window import ServedWindow
from forebay.executors.wire.messages import (
    ExecutorBeat,
    LeaseCall,
    LeaseReply,
    OpenWindow,
    Registration,
    TaskFailure,
    TrainerBeat,
)
from forebay.home.paths import Home
from forebay.system.output.error_report import ErrorReport

SOURCES = ["history", "clicks"]
TASKS = {"history": [(0, 10), (1, 10)], "clicks": [(0, 5)]}
WINDOW = "2026-03-01"
START = datetime(2026, 3, 1, tzinfo=UTC)
SILENT_AFTER = 10.0


class Driver:
    """A driver's state over one recorded window, and a clock that stands."""

    def __init__(self, folder: Path, attempt: int = 1) -> None:
        self.folder, self.attempt = folder, attempt
        self.now = 100.0
        self.ledger = Ledger(Home(folder), "ads")
        if not self.ledger.generations(WINDOW):
            record_tasks(self.ledger, WINDOW, (START, START + timedelta(days=1)), TASKS)
        self.journal = Journal(folder / "driver.jsonl")
        self.state = DriverState(self.journal, attempt, self.window, SILENT_AFTER, lambda: self.now)

    def window(self, window: str, generation: int) -> ServedWindow:
        return ServedWindow(
            self.ledger, window, generation, SOURCES, JobSpec(), no_hazards(self.folder)
        )

    def again(self) -> Driver:
        """Its successor."""
        self.journal.close()
        return Driver(self.folder, self.attempt + 1)

    def executor(self, index: int = 0, attempt: int = 1, name: str = "i") -> RegisteredExecutor:
        name = f"{name}{index}-{attempt}"
        call = Registration(executor=index, instance=name, attempt=attempt, address="a", pid=1)
        self.state.register(call)
        member = self.state.member(index, name)
        self.state.assign_epoch(member)
        return member

    def open(self, trainer: int = 1, **used: TaskProgress) -> Session:
        positions = {name.replace("_", "/"): progress for name, progress in used.items()}
        call = OpenWindow(
            trainer=trainer, window=WINDOW, generation=1, step=4, sealed={}, used=positions
        )
        return self.state.open(call)

    def call(self, member: RegisteredExecutor, epoch: int | None, *, last: bool) -> LeaseCall:
        return LeaseCall(
            executor=member.registration.executor,
            instance=member.registration.instance,
            epoch=member.epoch if epoch is None else epoch,
            sequence=1,
            last=last,
        )

    def lease(
        self, member: RegisteredExecutor, epoch: int | None = None, *, last: bool = False
    ) -> LeaseReply | None:
        return self.state.lease(member, self.call(member, epoch, last=last))

    def unchanged(self, member: RegisteredExecutor) -> LeaseReply:
        return self.state.unchanged(member, self.call(member, None, last=False))

    def fail(
        self, member: RegisteredExecutor, attempt: int, *, epoch: int = 0, code: int = 4
    ) -> None:
        call = TaskFailure(
            executor=member.registration.executor,
            instance=member.registration.instance,
            epoch=epoch or member.epoch,
            task_id="clicks/0",
            attempt=attempt,
            cause=ErrorReport(error="E", message="disk " * 200, exit_code=code),
        )
        self.state.failed(call)

    def fail_twice(self, session: Session) -> None:
        """Two executors, one after the other, fail the same task; the trainer fences both."""
        for attempt in (1, 2):
            member = self.executor(attempt=attempt)
            self.lease(member)
            self.fail(member, attempt)
            self.fence(session, attempt)

    def fence(self, session: Session, number: int) -> None:
        """The trainer answers all fences; it took nothing."""
        fenced: Any = {epoch: {} for epoch in session.fencing}
        self.beat(session, number, version=session.version, fenced=fenced)

    def beat(self, session: Session, number: int = 1, **more: Any) -> None:
        told = {"trainer": 1, "session": session.number, "version": 0, **more}
        self.state.beat_of_trainer(session, TrainerBeat(sequence=number, **told))


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


def progress(rows: int, dead: int = 0, *, ended: bool = False) -> TaskProgress:
    return TaskProgress(position=Position(0, rows), rows_read=rows, dead_rows=dead, ended=ended)


def beat_of(member: RegisteredExecutor, epoch: int) -> ExecutorBeat:
    name = member.registration.instance
    return ExecutorBeat(executor=0, instance=name, epoch=epoch, done=["clicks/0"])


def test_before_a_window_is_open_there_is_nothing_to_tell(driver: Driver) -> None:
    driver.executor()
    status = driver.state.status()
    assert (status.incarnation, status.executors, status.sealed_step) == (1, [0], 0)
    assert (status.tasks, status.rows_used) == ({}, {})


def test_status_tells_rows_and_tasks(driver: Driver) -> None:
    session = driver.open(history_0=progress(6, 1))
    assert driver.lease(driver.executor()) is not None
    session.served.use({"clicks/0": progress(2), "history/0": progress(10, 3, ended=True)})
    status = driver.state.status()
    assert (status.sealed_step, status.rows_used) == (4, {"history": 10, "clicks": 2})
    assert status.tasks == {"pending": 0, "reading": 2, "read": 0, "used": 1, "sealed": 0}
    session.served.seal({"history/0": progress(10, 3, ended=True)})
    assert (driver.state.status().tasks["sealed"], session.served.tasks) == (1, 3)


def test_leases_are_answered_when_something_changed(driver: Driver) -> None:
    member = driver.executor()
    assert driver.lease(member) is None, "no window, and it knows that"
    nothing = LeaseReply(epoch=0, window="", generation=0, grants=[], last=True, readers={})
    assert driver.lease(member, epoch=7) == nothing
    driver.open()
    assert driver.lease(member) is not None, "it should call again and get an epoch"
    driver.state.assign_epoch(member)
    first = there(driver.lease(member, epoch=0))
    assert [grant.task.task_id for grant in first.grants] == ["history/0", "history/1", "clicks/0"]
    assert [grant.attempt for grant in first.grants] == [1, 1, 1]
    assert first.last
    assert first.pending == {}
    assert driver.lease(member, last=True) is None
    assert driver.lease(member, last=False) is not None, "it did not know that all is leased"


def test_who_is_no_longer_alone_waits_for_no_task_of_others(driver: Driver) -> None:
    driver.open().served.leases.reading_max = [1, 1]
    first = driver.executor()
    reply = first.reply = there(driver.lease(first))
    assert reply.pending == {"history": 1}
    assert driver.lease(first) is None
    assert driver.unchanged(first).pending == {"history": 1}
    taken = there(driver.lease(driver.executor(1)))
    assert [grant.task.task_id for grant in taken.grants] == ["history/1"]
    assert driver.unchanged(first).pending == {}, "it would wait for it in each hour"
    assert driver.unchanged(first).readers == reply.readers


def test_a_failure_of_storage_is_tried_again_elsewhere(driver: Driver) -> None:
    session = driver.open()
    version, member = session.version, driver.executor()
    assert session.version == version + 1
    epoch = member.epoch
    driver.lease(member)
    driver.fail(member, 1)
    assert (member.epoch, session.fencing, session.error) == (0, {epoch}, None)
    assert session.version == version + 2
    (failure,) = (r for r in driver.again().journal.records if r["kind"] == "failure")
    assert (failure["task"], len(failure["message"])) == ("clicks/0", 500)


def test_the_last_attempt_ends_the_window(driver: Driver) -> None:
    session = driver.open()
    driver.fail_twice(session)
    assert session.error is None
    assert not session.fencing
    member = driver.executor(attempt=3)
    driver.lease(member)
    version = session.version
    driver.fail(member, 3)
    error = there(session.error)
    assert error.message.startswith("task clicks/0 failed 3 times, the last time: disk")
    assert error.exit_code == InfrastructureError.exit_code
    assert (session.version, driver.state.orders(session).error) == (version + 1, session.error)
    assert driver.executor(1).epoch == 0, "a window that ends in an error gets no new readers"


@pytest.mark.parametrize("code", [1, 2, 3])
def test_what_no_attempt_cures_ends_the_window_at_once(driver: Driver, code: int) -> None:
    session, member = driver.open(), driver.executor()
    driver.lease(member)
    driver.fail(member, 1, code=code)
    first = there(session.error)
    assert first.exit_code == code
    driver.fail(member, 1, code=3 if code != 3 else 1)
    assert session.error == first, "the first cause is what is told"


def test_failures_of_lost_leases_are_refused(driver: Driver) -> None:
    member = driver.executor()
    with pytest.raises(FencedError, match="is over"):
        driver.fail(member, 1)
    driver.open()
    driver.state.assign_epoch(member)
    driver.lease(member)
    with pytest.raises(FencedError, match="is over"):
        driver.fail(member, 1, epoch=member.epoch + 1)
    with pytest.raises(FencedError, match="lost its lease"):
        driver.fail(member, 2)


def test_a_new_driver_remembers_failures_of_the_trainer_that_goes_on(driver: Driver) -> None:
    session = driver.open()
    driver.fail_twice(session)
    successor = driver.again()
    assert successor.state.incarnation == 2
    session = successor.open()
    member = successor.executor(attempt=3)
    reply = there(successor.lease(member))
    assert [grant.failures for grant in reply.grants] == [0, 0, 2]
    successor.fail(member, 1)
    assert session.error is not None, "two failures before, and one now"
    another = successor.again()
    session = another.open(trainer=2)
    member = another.executor()
    reply = there(another.lease(member))
    assert [grant.failures for grant in reply.grants] == [0, 0, 0]
    with pytest.raises(FencedError, match="trainer 2 has taken over from trainer 1"):
        another.state.session_of(1, session.number)
    assert another.state.session_of(2, session.number) is session
    with pytest.raises(NotKnownError, match="is not open"):
        another.state.session_of(2, session.number - 1)


def test_silence_loses_the_leases(driver: Driver) -> None:
    session = driver.open()
    quiet, lively = driver.executor(0), driver.executor(1)
    epoch = quiet.epoch
    driver.now += SILENT_AFTER
    assert not driver.state.expire()
    driver.state.member(1, lively.registration.instance)
    driver.now += 0.5
    assert driver.state.expire()
    assert session.fencing == {epoch}
    with pytest.raises(NotKnownError):
        driver.state.member(0, quiet.registration.instance)
    (serving,) = driver.state.orders(session).serving
    assert (serving.executor, serving.epoch) == (1, lively.epoch)


def test_the_highest_attempt_is_the_executor_whatever_clocks_show(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.executor(attempt=4)
    past = time.time_ns() - 3600 * 10**9  # the clock of the next processes is set back
    monkeypatch.setattr(time, "time_ns", lambda: past)
    driver.executor(attempt=5)
    driver.executor(attempt=5)  # the same one, after a call that was not answered
    monkeypatch.undo()
    with pytest.raises(FencedError, match="attempt 5 is data executor 0 now"):
        driver.executor(attempt=4)
    with pytest.raises(FencedError, match="attempt 5 is data executor 0 now"):
        driver.executor(attempt=5, name="another")
    assert driver.state.member(0, "i0-5").registration.attempt == 5
    driver.executor(attempt=6)
    with pytest.raises(NotKnownError):
        driver.state.member(0, "i0-5")


def test_a_beat_counts_for_its_own_epoch_and_once(driver: Driver) -> None:
    session, member = driver.open(), driver.executor()
    driver.lease(member)
    beat = beat_of(member, member.epoch)
    driver.state.beat_of_executor(beat.model_copy(update={"epoch": member.epoch + 1}))
    assert session.served.counts()["read"] == 0
    driver.state.beat_of_executor(beat)
    assert session.served.counts()["read"] == 1
    used = {"clicks/0": progress(5, ended=True)}
    driver.beat(session, used=used, broken=[member.epoch])
    assert session.served.counts()["used"] == 1
    version = session.version
    assert member.epoch == 0
    driver.state.assign_epoch(member)
    driver.beat(session, used=used, broken=[member.epoch])
    assert (member.epoch != 0, session.version) == (True, version + 1), "the same beat again"


def test_a_task_of_no_plan_is_refused_and_tasks_are_told_apart_by_source(driver: Driver) -> None:
    session = driver.open()
    with pytest.raises(InfrastructureError, match="has no task 'clicks/7'"):
        session.served.row_of("clicks/7")
    assert session.served.row_of("clicks/0") != session.served.row_of("history/0")
    positions = {"history/1": progress(1), "clicks/0": progress(1)}
    ahead = session.served.data_tasks("history", positions)
    assert [(task.hour, at) for task, at in ahead.values()] == [(0, Position(0, 0))]
    before = {"history/0": progress(5, ended=True)}
    found = session.served.data_tasks("history", before | positions)
    (task, position) = found.pop("history/1")
    assert (found, task.hour, position) == ({}, 1, progress(1).position)
    assert session.served.data_tasks("history", {"clicks/0": progress(1)}) == {}
    folded = session.served.data_tasks("history", {"history/0..1": progress(9)})
    end = Position(task.ranges[-1].end, 0)
    assert folded == {"history/1": (task, end)}, "the last of its partition, at its end"


def test_a_window_that_ends_with_an_error_leases_nothing(driver: Driver) -> None:
    session, member = driver.open(), driver.executor()
    session.error = ErrorReport(error="E", message="m", exit_code=3)
    assert there(driver.lease(member, epoch=0)).grants == []


def test_a_restarted_driver_refuses_trainers_before_the_newest(driver: Driver) -> None:
    driver.open(trainer=1)
    driver.open(trainer=3)
    driver.open(trainer=3)
    successor = driver.again()
    assert [each["trainer"] for each in successor.journal.records] == [1, 3]
    with pytest.raises(FencedError, match="trainer 3 has taken over from trainer 2"):
        successor.open(trainer=2)
    assert successor.open(trainer=3).number > driver.open(trainer=3).number
    assert successor.open(trainer=4).sealed_step == 4


def test_numbers_ascend_from_driver_to_driver_and_fit_into_leases(tmp_path: Path) -> None:
    submissions, starts, given = 2**23, 2**16, 2**24
    before = Driver(tmp_path, (submissions - 2) * starts + starts - 1)
    before.state._numbers = given - 2
    last = before.open()
    before.journal.close()
    after = Driver(tmp_path, (submissions - 1) * starts + starts - 1)
    assert after.open().number > last.number
    after.state._numbers = given - 2
    member = after.executor()
    assert member.epoch == 2**63 - 1
    assert there(after.lease(member)).grants
    with pytest.raises(InfrastructureError, match="came and went 16,777,215 times"):
        after.executor(attempt=2)


def test_only_the_executor_whose_stream_broke_is_lost(driver: Driver) -> None:
    session = driver.open()
    broken, whole = driver.executor(0), driver.executor(1)
    epoch = broken.epoch
    driver.beat(session, version=session.version, broken=[epoch])
    orders = driver.state.orders(session)
    assert [each.executor for each in orders.serving] == [1]
    assert (orders.fence, broken.epoch) == ([epoch], 0)
    assert whole.epoch != 0


def test_an_executor_that_comes_back_without_an_epoch_needs_no_fence(driver: Driver) -> None:
    member, session = driver.executor(), driver.open()
    assert member.epoch == 0
    driver.executor(attempt=2)
    assert driver.state.orders(session).fence == []


def test_a_beat_outside_of_its_epoch_counts_no_tasks(driver: Driver) -> None:
    member = driver.executor()
    call = beat_of(member, 7)
    driver.state.beat_of_executor(call)
    driver.open()
    driver.state.beat_of_executor(call.model_copy(update={"epoch": 0}))
    assert driver.state.status().tasks["read"] == 0


def test_a_plan_of_another_pipeline_is_refused(driver: Driver) -> None:
    with pytest.raises(InfrastructureError, match="names a source of another pipeline"):
        ServedWindow(driver.ledger, WINDOW, 1, ["history"], JobSpec(), no_hazards(driver.folder))
