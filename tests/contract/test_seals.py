"""Seals of a window in training that another host continues from, on each kind of store."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from support.jobs import report_job, request, store_job
from support.letters import letter, letter_file, letters_of, task
from support.links import link
from support.minibatches import labelled
from support.model_lines import plan_empty
from support.poisons import poison
from support.stages import replanned
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.config.load import Project
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import DataError, FencedError, InfrastructureError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import take_lease
from forebay.executors.retention.home_garbage import Found, find_garbage, remove_garbage
from forebay.executors.trainer.seal_copier import SealCopier
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.trainer.window.open_window import DurableCounters
from forebay.executors.window_files.checkpoints import CheckpointStore, Seal
from forebay.executors.window_files.dead_letters import DEAD_FOLDER, read_letters
from forebay.executors.window_files.poisons import PoisonRecord
from forebay.executors.window_files.scores import SCORES_FOLDER, ScoreWriter, Segments
from forebay.executors.window_files.seal_copies import COUNTERS_NAME
from forebay.executors.window_files.steps import STEPS_NAME, StepSeries, read_steps
from forebay.home.database.open import close_databases
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of
from forebay.mixture.counting import CountingLearner
from forebay.system.liveness import activities

KEY = "2026-03-01"
AT = datetime(2026, 3, 1, tzinfo=UTC)
# Of the test at hand.
HOSTS: list[Host] = []


class Host:
    """What a trainer does with one window on one host, without a driver."""

    def __init__(self, root: Path, lease_epoch: int | None = None, model: str = "same") -> None:
        self.home = Home(root)
        self.ledger = Ledger(self.home, "ads")
        self.chain = ModelChain(self.home, "ads", lease_epoch=lease_epoch)
        self.folder = self.chain.folder(KEY, 1)
        archive = WindowArchive(store_of(self.home), "ads", "main")
        self.copier = SealCopier(self.chain, archive, model, pause_seconds=0.0)
        HOSTS.append(self)
        self.checkpoints = CheckpointStore(self.folder)
        self.learner = CountingLearner(1)
        self.step = 0

    def open(self) -> Seal | None:
        """As a trainer does: what it continues from."""
        self.copier.bring(KEY, 1, self.checkpoints)
        seal = self.checkpoints.load(self.learner)
        self.scores = ScoreWriter(self.folder / SCORES_FOLDER, ["a"])
        self.scores.restore(seal.scores if seal else [])
        self.letters = letter_file(self.folder, sealed=seal.letters if seal else None)
        self.counters = DurableCounters(self.folder / COUNTERS_NAME, ("used_rows",))
        self.series = StepSeries(self.folder, ["clicks"])
        if seal is not None:
            self.step = seal.window_step
            self.series.restore(self.step, np.array([seal.seen[0].rows]))
        return seal

    def learn(self, *events: int) -> None:
        """One step; the row after the last event is a dead letter."""
        minibatch = labelled("stream", events, [0.0] * len(events))
        self.scores.append(minibatch, np.zeros((len(events), 1), np.float32))
        self.learner.learn(minibatch)
        self.counters.add("used_rows", len(events))
        self.series.stepped(np.array([len(events)]), 0.0)
        self.letters.append(letters_of(task(), letter(events[-1] + 1)))
        PoisonRecord(self.folder).add(task(), poison(task(), events[-1]))
        self.step += 1

    def seal(self) -> None:
        self.series.write({}, final=False)
        seal = Seal(
            window=KEY,
            generation=1,
            step=100 + self.step,
            window_step=self.step,
            final=False,
            progress={"clicks/0": TaskProgress(position=Position(0, self.step), rows_read=9)},
            model_fingerprint="model",
            base_seen=[],
            seen=self.learner.seen(),
            scores=self.scores.seal(),
            letters=self.letters.sealed(),
            sealed_at=AT,
            runtime=str(self.home.root),
        )
        self.checkpoints.write(self.learner, seal)
        self.copier.sealed(self.checkpoints)

    def step_on(self, *events: int) -> None:
        self.learn(*events)
        self.seal()

    def sealed(self, *events: int) -> Stored:
        """The same, until the seal is in the store."""
        self.step_on(*events)
        return self.copied(self.step)

    def copied(self, step: int) -> Stored:
        """Wait until that step's seal is in the store, with a row."""
        eventually(lambda: (found := self.chain.seal(KEY, 1)) and found.step >= step, 30)
        found = there(self.chain.seal(KEY, 1))
        assert found.step == step
        return found.stored

    def tried(self) -> None:
        """Wait until the copy of the newest seal has begun."""
        eventually(lambda: self.copier._waiting is None, 30)

    def dead(self) -> list[int | str]:
        return [each.location["row"] for each in read_letters(self.folder / DEAD_FOLDER)]

    def in_store(self) -> set[str]:
        return set(store_of(self.home).names(f"models/ads/main/{KEY}"))


@pytest.fixture(params=["folder", "s3"])
def root(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Below it, each folder is the home of one host; they share a database and a store."""
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    address = str(tmp_path / "store")
    if request.param == "s3":
        address = request.getfixturevalue("new_s3_address")()
    monkeypatch.setenv("FOREBAY_STORE", address)
    yield tmp_path
    close_databases()


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """A copier's thread ends with its trainer."""
    before = set(activities())
    yield
    while HOSTS:
        HOSTS.pop().copier.close()
    eventually(lambda: set(activities()) <= before)


@pytest.fixture
def one(root: Path) -> Host:
    """A host that has begun to train the window."""
    host = Host(root / "one")
    plan_empty(host.ledger, KEY)
    assert host.open() is None
    return host


def test_another_host_continues_with_all_that_was_sealed(root: Path, one: Host) -> None:
    one.learn(1, 2)
    one.sealed(4)
    one.learn(6, 7, 8)  # not sealed
    other = Host(root / "other")
    seal = there(other.open())
    assert seal == there(one.checkpoints.newest())[0]
    assert (seal.runtime, seal.progress["clicks/0"].position) == (str(root / "one"), Position(0, 2))
    assert (other.learner.seen(), other.counters.value("used_rows")) == (seal.seen, 3)
    assert other.dead() == [3, 5]
    assert [each.unit.first.part for each in PoisonRecord(other.folder).of(task())] == [2, 4]
    assert [each.step for each in read_steps(other.folder / STEPS_NAME)] == [1, 2]
    other.sealed(6, 7, 8)
    scores = there(Segments(KEY, other.folder / SCORES_FOLDER).scores())
    assert scores["event_id"].to_pylist() == [1, 2, 4, 6, 7, 8]
    assert other.dead() == [3, 5, 9]
    assert other.learner.seen() == one.learner.seen()


def test_the_newest_takes_the_place_of_the_one_before_and_the_link_of_all(one: Host) -> None:
    first, second = one.sealed(1), one.sealed(2)
    one.copier.finish()
    assert first.name != second.name
    assert (one.in_store(), list(HomeCheck(one.home).faults())) == ({second.name}, [])
    one.chain.clear_store(f"models/ads/main/{KEY}")
    assert one.in_store() == {second.name}, "the next trainer needs it"
    one.chain.record(link(KEY))
    assert one.chain.seal(KEY, 1) is None
    assert one.in_store() == set()


def test_a_window_that_may_be_no_link_is_begun_anew_everywhere(root: Path, one: Host) -> None:
    one.sealed(1, 2)
    one.chain.drop_seal(KEY, 1)
    assert one.chain.seal(KEY, 1) is None
    assert one.in_store() == set()
    assert Host(root / "other").open() is None
    one.chain.drop_seal(KEY, 1)  # as where none was copied yet


def test_what_is_sealed_here_is_the_truth_here(root: Path, one: Host) -> None:
    one.sealed(1)
    other = Host(root / "other")
    other.open()
    other.learn(2)
    other.sealed(3)
    again = there(Host(root / "one").open())
    assert (again.window_step, again.runtime) == (1, str(root / "one"))


def test_what_was_half_placed_is_placed_again(root: Path, one: Host) -> None:
    one.sealed(1)
    other = Host(root / "other")
    other.open()
    other.learn(5)
    shutil.rmtree(other.checkpoints.folder)  # killed before the last of it was placed
    again = Host(root / "other")
    assert again.open() is not None
    assert again.dead() == [2]
    assert again.counters.value("used_rows") == 1


def test_a_seal_of_another_model_or_generation_is_not_continued(root: Path, one: Host) -> None:
    one.sealed(1)
    assert Host(root / "other", model="changed").open() is None
    assert replanned(one.ledger, KEY) == 2
    other = Host(root / "other")
    newer = CheckpointStore(other.chain.folder(KEY, 2))
    other.copier.bring(KEY, 2, newer)
    assert newer.newest() is None


@pytest.mark.guarantee(
    "a seal in the store is missing or damaged when another host continues from it",
    "red, with its name and what to do",
)
def test_a_damaged_copy_is_refused_with_the_way_out(root: Path, one: Host) -> None:
    stored = one.sealed(1)
    store_of(one.home).remove([stored.name])
    with pytest.raises(DataError) as refused:
        Host(root / "other").open()
    told = str(refused.value)
    assert stored.name in told
    assert told.endswith(
        "or train window 2026-03-01 again "
        "(`forebay run ads --from 2026-03-01 --to 2026-03-01 --reprocess`; in Airflow, clear its "
        "run)"
    )


def test_a_trainer_that_was_overtaken_stops_and_leaves_the_row(root: Path, one: Host) -> None:
    one.sealed(1)
    job = request(one.home, "job-1", {KEY: 1})
    store_job(job, "running")
    take_lease(job).release()
    late = Host(root / "late", lease_epoch=0)
    late.open()
    late.step_on(2)
    late.tried()
    with pytest.raises(FencedError, match="job-1 trains this line now"):
        late.copier.finish()
    with pytest.raises(FencedError):
        late.copier.sealed(late.checkpoints)
    assert one.copied(1)


@pytest.mark.guarantee(
    "the store goes away while a seal is copied to it",
    "nothing; training continues, and the next seal is tried",
)
def test_training_goes_on_while_the_store_is_away(
    one: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as away, caplog.at_level(logging.INFO):
        refuse = Mock(side_effect=InfrastructureError("the store is away"))
        away.setattr(type(store_of(one.home)), "put_tree", refuse)
        for event in range(5):
            one.step_on(event)
            one.tried()
        one.copier.finish()
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "the store is away. Training continues" in warnings[0].getMessage()
    assert one.chain.seal(KEY, 1) is None
    one.sealed(9)
    assert one.in_store() == {one.copied(6).name}


def test_one_at_a_time_and_then_the_newest(one: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    put_tree: Any = type(store_of(one.home)).put_tree
    copied: list[str] = []

    def slow(*arguments: Any) -> Stored:
        begun.set()
        assert go_on.wait(30)
        stored: Stored = put_tree(*arguments)
        copied.append(stored.name)
        return stored

    monkeypatch.setattr(type(store_of(one.home)), "put_tree", slow)
    one.step_on(0)
    assert begun.wait(30)
    for event in range(1, 8):  # the first is pruned meanwhile, and its copy stays whole
        one.step_on(event)
    go_on.set()
    one.copied(8)
    one.copier.finish()
    assert len(copied) == 2


def declaring_nothing(home: Home) -> Project:
    return Project(home.root, home.root, {}, {}, [], {}, {})


def found_by(act: Callable[[Home, Project], Found], home: Home) -> list[tuple[str, int | None]]:
    found = act(home, declaring_nothing(home))
    assert found.unnamed.names == []
    return [(each.kind, each.generation) for each in found.windows if each.kind == "seal"]


def test_garbage_is_what_was_planned_anew_and_no_job_trains(one: Host) -> None:
    epoch = store_job(request(one.home, "job-1", {KEY: 1}), "running")
    one.sealed(1)
    one.copier.finish()
    assert replanned(one.ledger, KEY) == 2
    assert found_by(remove_garbage, one.home) == [], "another host may take over job-1"
    report_job(one.home, "job-1", epoch, "failed")
    assert (found_by(find_garbage, one.home), len(one.in_store())) == ([("seal", 1)], 1)
    assert (found_by(remove_garbage, one.home), one.in_store()) == ([("seal", 1)], set())
    assert one.chain.seal(KEY, 1) is None


def test_a_window_whose_job_failed_keeps_its_seal_until_it_is_forgotten(one: Host) -> None:
    one.sealed(1)
    one.copier.finish()
    assert found_by(remove_garbage, one.home) == []
    assert one.ledger.forget(KEY)
    assert one.chain.seal(KEY, 1) is None
    one.step_on(2)
    one.tried()
    one.copier.finish()
    assert one.chain.seal(KEY, 1) is None, "its plan is gone, so nobody continues it"
    unnamed = remove_garbage(one.home, declaring_nothing(one.home)).unnamed.names
    assert (len(unnamed), one.in_store()) == (2, set())


def test_only_homes_that_other_hosts_share_copy_seals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FOREBAY_DATABASE", raising=False)
    monkeypatch.delenv("FOREBAY_STORE", raising=False)
    alone = Host(tmp_path)
    plan_empty(alone.ledger, KEY)
    alone.open()
    alone.step_on(1)
    alone.copier.finish()
    assert alone.chain.seal(KEY, 1) is None
    assert alone.in_store() == set()
    close_databases()
