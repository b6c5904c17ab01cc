"""The protocol as a state machine of crashes: every row is learnt exactly once.

Driver state, journal, ledger and the trainer's inbox are the real ones. Executors, the network and
the model are simulated: frames of an epoch arrive in order, late or never.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.poisons import no_hazards
from support.task_tables import add_tasks, open_plan, record_tasks

from forebay.config.specs.jobs import JobSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.task_runs import Run
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import FencedError, NotKnownError
from forebay.executors.driver.journal import Journal
from forebay.executors.driver.state import DriverState
from forebay.executors.driver.window import ServedWindow
from forebay.executors.trainer.inbox import Frame, Inbox
from forebay.executors.wire.messages import (
    ExecutorBeat,
    LeaseCall,
    OpenWindow,
    Progress,
    Registration,
    TrainerBeat,
)
from forebay.home.paths import Home

SOURCES = ["history", "clicks"]
WINDOW = "2026-03-01"
DAY = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
TIMEOUT = 10.0
EXECUTORS = st.integers(0, 2)
Rows = list[tuple[str, int]]


@dataclass
class _Reading:
    task_id: str
    at: int
    end: int
    ended: bool = False


@dataclass
class _Executor:
    """A process: what it reads under its epoch, and the frames that it sent."""

    registration: Registration
    epoch: int = 0
    sequence: int = 0
    reading: dict[str, _Reading] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    @property
    def who(self) -> dict[str, Any]:
        known = self.registration
        return {"executor": known.executor, "instance": known.instance, "epoch": self.epoch}


@dataclass
class _Trainer:
    model: Counter[tuple[str, int]]
    sealed: Progress
    number: int
    session: int = 0
    sequence: int = 0
    version: int = 0
    inbox: Inbox = field(default_factory=lambda: Inbox({}))
    hand: Frame | None = None
    fenced: dict[int, Progress] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)


class Crashes(RuleBasedStateMachine):
    """Rules are things that happen; the invariant is that no row counts twice."""

    grows = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="leases"))
        self.now = 0.0
        self.started = self.drivers = self.trainers = self.newest_session = 0
        self.lengths: dict[str, int] = {}
        self.streams: dict[int, list[Frame]] = {}
        self.rows: dict[Frame, Rows] = {}
        self.executors: dict[int, _Executor] = {}
        self.zombies: list[_Executor] = []
        self.checkpoint: tuple[Progress, Counter[tuple[str, int]]] = ({}, Counter())

    @initialize(
        tasks=st.lists(
            st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(0, 20)),
            min_size=2,
            max_size=8,
        )
    )
    def plan(self, tasks: list[tuple[int, int, int]]) -> None:
        tasks.sort(key=lambda task: task[1])
        planned = {
            name: [(hour, rows) for source, hour, rows in tasks if SOURCES[source] == name]
            for name in SOURCES
        }
        for name, parts in planned.items():
            self.lengths |= {f"{name}/{number}": rows for number, (_, rows) in enumerate(parts)}
        self.ledger = Ledger(Home(self.folder), "ads")
        record_tasks(self.ledger, WINDOW, DAY, planned)
        self._start_driver()
        self._start_trainer()
        self.executor_starts(0)
        self.executor_starts(1)

    @rule(actions=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 7)), min_size=20))
    def time_passes(self, actions: list[tuple[int, int]]) -> None:
        """Nothing breaks for a while, but things interleave as they like."""
        for action, pick in actions:
            if action == 0:
                for executor in self.executors.values():
                    self._lease(executor)
                self.trainer_beats()
            elif action in (1, 2):
                for executor in self.executors.values():
                    self._send(executor, 1 + pick % 3, pick)
            elif action == 3:
                self.frames_arrive(pick, 1 + pick % 3)
            elif action == 4:
                self.trainer_takes()
            elif action == 5:
                self.trainer_steps()
                self.trainer_takes()
            else:
                for executor in self.executors.values():
                    self._beat_of(executor)
                self.trainer_beats()

    # Executors ------------------------------------------------------------------------------

    @rule(index=EXECUTORS)
    def executor_starts(self, index: int) -> None:
        """Also: it was killed, and its successor comes up."""
        self.started += 1
        old = self.executors.pop(index, None)
        if old is not None and old.epoch:
            self.trainer.broken.add(old.epoch)
        registration = Registration(
            executor=index, instance=f"i{self.started}", attempt=self.started, address="a", pid=1
        )
        self.state.register(registration)
        self.executors[index] = _Executor(registration)

    @rule(index=EXECUTORS)
    def executor_is_cut_off(self, index: int) -> None:
        """It lives and sends on, but the driver hears nothing of it until it expires."""
        executor = self.executors.pop(index, None)
        if executor is not None:
            self.zombies.append(executor)
            for other in self.executors.values():
                self._seen(other)
            self.now += TIMEOUT + 1
            for other in self.executors.values():
                self._seen(other)
            self.state.expire()

    @precondition(lambda self: self.zombies)
    @rule(rows=st.integers(0, 3), pick=st.integers(0, 7))
    def zombie_sends(self, rows: int, pick: int) -> None:
        self._send(self.zombies[pick % len(self.zombies)], rows, pick)

    # Trainer --------------------------------------------------------------------------------

    def frames_arrive(self, pick: int, count: int) -> None:
        waiting = [epoch for epoch, frames in self.streams.items() if frames]
        if waiting:
            frames = self.streams[waiting[pick % len(waiting)]]
            for _ in range(min(count, len(frames))):
                self.trainer.inbox.put(frames.pop(0))

    def trainer_takes(self) -> None:
        if self.trainer.hand is None:
            self.trainer.hand = self.trainer.inbox.take()

    def trainer_steps(self) -> None:
        trainer = self.trainer
        if trainer.hand is not None:
            trainer.model.update(self.rows[trainer.hand])
            trainer.inbox.use(trainer.hand)
            trainer.hand = None

    @rule()
    def trainer_beats(self) -> None:
        trainer = self.trainer
        trainer.sequence += 1
        beat = TrainerBeat(
            trainer=trainer.number,
            session=trainer.session,
            sequence=trainer.sequence,
            version=trainer.version,
            used=trainer.inbox.news(),
            fenced=dict(trainer.fenced),
            broken=sorted(trainer.broken),
        )
        trainer.fenced.clear()
        trainer.broken.clear()
        try:
            session = self.state.session_of(trainer.number, trainer.session)
        except NotKnownError:
            self._open(trainer.inbox.fence_all())
            return
        self.state.beat_of_trainer(session, beat)
        self.state.beat_of_trainer(session, beat)  # a repeated call changes nothing
        orders = self.state.orders(session)
        assert orders.error is None
        trainer.version = orders.version
        for epoch in orders.fence:
            trainer.fenced[epoch] = trainer.inbox.fence(epoch)
        for serving in orders.serving:
            trainer.inbox.open(serving.epoch)

    @precondition(lambda self: self.trainer.hand is None)
    @rule()
    def trainer_seals(self) -> None:
        trainer = self.trainer
        positions = dict(trainer.inbox.used)
        self.checkpoint = (positions, Counter(trainer.model))
        trainer.sealed = positions
        try:
            session = self.state.session_of(trainer.number, trainer.session)
        except NotKnownError:
            return
        session.served.seal(positions)

    @rule()
    def trainer_is_killed(self) -> None:
        self._start_trainer()

    @precondition(lambda self: self.trainers > 1)
    @rule()
    def older_trainer_wakes_up(self) -> None:
        """Whatever drivers came and went meanwhile."""
        with pytest.raises(FencedError):
            self._open({}, self.trainers - 1)

    # Driver ---------------------------------------------------------------------------------

    @rule()
    def driver_is_killed(self) -> None:
        self.journal.close()
        self._start_driver()

    # What must hold -------------------------------------------------------------------------

    @invariant()
    def no_row_is_learnt_twice(self) -> None:
        trainer = getattr(self, "trainer", None)
        if trainer is not None:
            assert all(count == 1 for count in trainer.model.values())
            learnt = Counter(task for task, _ in trainer.model)
            for name, progress in trainer.inbox.used.items():
                run = Run.of(name)
                if run is None:
                    assert learnt[name] == progress.rows_read == progress.position.row
                else:
                    tasks = [f"{run.source}/{number}" for number in range(run.first, run.end)]
                    assert sum(learnt[task] for task in tasks) == progress.rows_read
                    assert all(learnt[task] == self.lengths[task] for task in tasks)

    def teardown(self) -> None:
        """Without further crashes the window ends, and every row was learnt."""
        try:
            if hasattr(self, "trainer"):
                self._run_to_the_end()
                wanted = {(task, row) for task, rows in self.lengths.items() for row in range(rows)}
                assert set(self.trainer.model) == wanted
                self.no_row_is_learnt_twice()
                self.journal.close()
        finally:
            shutil.rmtree(self.folder)

    def _run_to_the_end(self) -> None:
        if not self.executors:
            self.executor_starts(0)
        for _ in range(400):
            self.trainer_steps()
            if self.trainer.inbox.ended == len(self.lengths):
                session = self.state.session
                assert session is None or session.served.tasks == len(self.lengths)
                return
            for executor in self.executors.values():
                self._lease(executor)
                for pick in range(8):
                    self._send(executor, 3, pick)
                self._beat_of(executor)
            self.trainer_beats()
            for frames in self.streams.values():
                while frames:
                    self.trainer.inbox.put(frames.pop(0))
            self.trainer_takes()
        raise AssertionError("the window does not end")

    # Parts ----------------------------------------------------------------------------------

    def _start_driver(self) -> None:
        def served(window: str, generation: int) -> ServedWindow:
            return ServedWindow(
                self.ledger, window, generation, SOURCES, JobSpec(), no_hazards(self.folder)
            )

        self.journal = Journal(self.folder / "journal" / "driver.jsonl")
        self.drivers += 1
        self.state = DriverState(self.journal, self.drivers, served, TIMEOUT, lambda: self.now)

    def _start_trainer(self) -> None:
        positions, model = self.checkpoint
        self.trainers += 1
        self.trainer = _Trainer(
            Counter(model), dict(positions), self.trainers, inbox=Inbox(positions, grows=self.grows)
        )
        self._open(positions)

    def _open(self, used: Progress, number: int | None = None) -> None:
        trainer = self.trainer
        session = self.state.open(
            OpenWindow(
                trainer=number or trainer.number,
                window=WINDOW,
                generation=1,
                step=0,
                sealed=trainer.sealed,
                used=used,
            )
        )
        assert session.number > self.newest_session
        self.newest_session = trainer.session = session.number
        trainer.sequence = trainer.version = 0
        trainer.fenced.clear()
        trainer.broken.clear()

    def _seen(self, executor: _Executor) -> None:
        try:
            self.state.member(executor.registration.executor, executor.registration.instance)
        except NotKnownError:
            self.state.register(executor.registration)
            executor.sequence = 0

    def _lease(self, executor: _Executor) -> None:
        self._seen(executor)
        known = executor.registration
        member = self.state.member(known.executor, known.instance)
        self.state.assign_epoch(member)
        executor.sequence += 1
        call = LeaseCall(**executor.who, sequence=executor.sequence, last=False)
        reply = self.state.lease(member, call)
        if reply is None:
            return
        if reply.epoch != executor.epoch:
            executor.epoch = reply.epoch
            executor.reading.clear()
            executor.done.clear()
        for grant in reply.grants:
            start = grant.progress.position.row if grant.progress else 0
            task_id = grant.task.task_id
            assert task_id not in executor.reading
            executor.reading[task_id] = _Reading(task_id, start, self.lengths[task_id])

    def _send(self, executor: _Executor, rows: int, pick: int) -> None:
        open_tasks = [each for each in executor.reading.values() if not each.ended]
        if not open_tasks:
            return
        task = open_tasks[pick % len(open_tasks)]
        until = min(task.end, task.at + rows)
        task.ended = until == task.end and rows > 0
        ids = [(task.task_id, row) for row in range(task.at, until)]
        task.at = until
        if task.ended:
            executor.done.append(task.task_id)
        progress = TaskProgress(position=Position(0, until), rows_read=until, ended=task.ended)
        frame = Frame(
            minibatch=None,
            progress={task.task_id: progress},
            executor="data",
            epoch=executor.epoch,
            rows=len(ids),
            hour=0,
            feed="batch" if task.task_id.startswith("history") else "stream",
        )
        self.rows[frame] = ids
        self.streams.setdefault(executor.epoch, []).append(frame)

    def _beat_of(self, executor: _Executor) -> None:
        self._seen(executor)
        done, executor.done = executor.done, []
        self.state.beat_of_executor(ExecutorBeat(**executor.who, done=done))


class GrowingCrashes(Crashes):
    """The same of a window that is open: slices come meanwhile, and it is closed at the end.

    What lets it grow stores each slice, hands it over to the session of that moment, and does so
    again with all that is stored whenever another session is open.
    """

    grows = True

    @initialize(tasks=st.lists(st.lists(st.integers(0, 20), max_size=2), min_size=2, max_size=2))
    def plan(self, tasks: list[list[int]]) -> None:  # type: ignore[override]
        self.ledger = Ledger(Home(self.folder), "ads")
        self.number, self.closed = -1, False
        self.opened = open_plan(self.ledger, WINDOW, DAY)
        self._start_driver()
        self._start_trainer()
        self.executor_starts(0)
        self.executor_starts(1)
        self._store(tasks)
        self._hand_over()

    @rule(tasks=st.lists(st.lists(st.integers(0, 20), max_size=2), min_size=2, max_size=2))
    def slice_comes(self, tasks: list[list[int]]) -> None:
        self._store(tasks)
        self._hand_over()

    @rule(tasks=st.lists(st.lists(st.integers(0, 20), max_size=2), min_size=2, max_size=2))
    def driver_is_killed_with_a_slice_in_its_hands(self, tasks: list[list[int]]) -> None:
        self._store(tasks)
        self.driver_is_killed()

    def _store(self, tasks: list[list[int]]) -> None:
        self.number += 1
        for source, rows in zip(SOURCES, tasks, strict=True):
            first = sum(name.rpartition("/")[0] == source for name in self.lengths)
            if rows:
                add_tasks(self.ledger, self.opened, source, self.number, rows, first)
            for number, count in enumerate(rows, first):
                self.lengths[f"{source}/{number}"] = count

    def _hand_over(self) -> None:
        session = self.state.session
        if session is not None:
            session.served.grow(self.ledger.tasks(WINDOW, 1))
            session.served.leases.horizon = self.number

    def _open(self, used: Progress, number: int | None = None) -> None:
        super()._open(used, number)
        self._hand_over()
        if self.closed and self.state.session is not None:
            self.state.close(self.state.session.served)

    def _run_to_the_end(self) -> None:
        self.closed = True
        self._hand_over()
        if self.state.session is not None:
            self.state.close(self.state.session.served)
        super()._run_to_the_end()


TestGrowingCrashes = GrowingCrashes.TestCase
TestGrowingCrashes.settings = settings(max_examples=100, stateful_step_count=25)
TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(max_examples=100, stateful_step_count=25)
