"""Triggers: they look, log nothing at first, fire once, and survive being created again."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import psutil
import pytest
from airflow.sdk.serde import deserialize, serialize
from support.database_files import take_away
from support.jobs import ToldJob, of_another_host
from support.toy_stage import ToyStage

from forebay.executors.job import stored_jobs
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.stored_jobs import EXPIRED_SECONDS
from forebay.home.database.format import record_format
from forebay.home.paths import Home
from forebay.operators.job import job_end
from forebay.operators.runs.run_listener import wake_waiting_windows
from forebay.operators.triggers import base, poll, ready
from forebay.operators.triggers.base import WakingTrigger, defer_timeout
from forebay.operators.triggers.job import JobTrigger
from forebay.operators.triggers.ready import ReadyTrigger
from forebay.operators.triggers.turn import TurnTrigger
from forebay.operators.triggers.window_over import WindowOverTrigger
from forebay.operators.turn.snapshot import Turn, TurnSnapshot
from forebay.system.files.locks import FileLock

Answer = TypeVar("Answer")
SOON = 20.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(ready, "FIRST_LOOK_SECONDS", 0.02)


@pytest.fixture
def told(home: Home) -> ToldJob:
    made = ToldJob(home)
    made.tell("running")
    return made


def wait(work: Coroutine[Any, Any, Answer], seconds: float = SOON) -> Answer:
    async def bounded() -> Answer:
        return await asyncio.wait_for(work, seconds)

    return asyncio.run(bounded())


async def fired(trigger: WakingTrigger) -> list[Any]:
    return [event.payload async for event in trigger.run()]


def shared(home: Home, seconds: float) -> dict[str, Any]:
    return {"home": str(home.root), "deadline": time.time() + seconds, "not_before": 0.0}


def job_trigger(home: Home, epoch: int = 1, seconds: float = SOON) -> JobTrigger:
    return JobTrigger(job_id="ads.main.2026-03-01.g1", epoch=epoch, **shared(home, seconds))


def turn_trigger(home: Home, seconds: float = SOON) -> TurnTrigger:
    of: Any = {"dag_id": "ads", "pipeline": "ads", "line": "main", "before": "2026-03-01"}
    of["further"] = "2026-02-28"
    seen = TurnSnapshot.take(home, Turn(**of)).model_dump(mode="json")
    return TurnTrigger(seen=seen, **of, **shared(home, seconds))


def test_one_wakes_when_the_turn_of_the_window_before_begins(home: Home) -> None:
    """Not only when it has ended: until the task has woken, it often has."""
    trigger = turn_trigger(home)
    held = TurnSnapshot(held=True, is_near=False, links=[], further=[], failed_at=0.0)
    assert trigger.judge(held) is None, "the line is not free"
    assert trigger.judge(held.model_copy(update={"further": [1]})) is not None
    seen = {"links": [], "failed_at": 0.0}
    other = TurnTrigger(**{**trigger.serialize()[1], "seen": seen})
    assert other.judge(held.model_copy(update={"further": [1]})) is None, "it waits for the links"


def ready_trigger(toy: ToyStage, home: Home, seconds: float = SOON) -> ReadyTrigger:
    arguments = ["ads", "2026-03-01", "clicks"]
    return ReadyTrigger(python=toy.python, arguments=arguments, **shared(home, seconds))


def found(state: str, reason: str = "") -> dict[str, Any]:
    told = {"state": state, "window": "2026-03-01", "source": "clicks", "reason": reason}
    return {"prints": told}


def test_all_triggers_are_made_again_from_what_is_stored(home: Home, tmp_path: Path) -> None:
    toy = ToyStage.make(tmp_path / "toy")
    for trigger in (
        job_trigger(home),
        turn_trigger(home),
        ready_trigger(toy, home),
        WindowOverTrigger(until=1.0, not_before=2.0),
    ):
        path, arguments = trigger.serialize()
        module, _, name = path.rpartition(".")
        assert (module, name) == (type(trigger).__module__, type(trigger).__name__)
        stored = deserialize(serialize(arguments))
        assert type(trigger)(**stored).serialize() == (path, arguments)


def test_the_window_is_over_but_no_event_comes_within_the_first_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    until = time.time() + 0.2
    assert wait(fired(WindowOverTrigger(until=until, not_before=0.0))) == [{}]
    assert time.time() >= until
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(base.asyncio, "sleep", sleep)
    assert wait(fired(WindowOverTrigger(until=0.0))) == [{}]
    assert 9 < slept[0] <= 10
    # Clocks of two machines differ: a trigger never keeps quiet for longer than it would here.
    wait(fired(WindowOverTrigger(until=0.0, not_before=time.time() + 1e6)))
    assert slept[-1] == 10
    assert (defer_timeout(30).total_seconds(), defer_timeout(-5).total_seconds()) == (630, 600)


def test_a_job_is_followed_until_it_is_lost(
    home: Home, told: ToldJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told.progress(step=120, sealed_step=100, rows={"clicks": 30, "views": 10}, rows_per_second=7)

    async def follow() -> list[Any]:
        trigger = job_trigger(home)
        said: list[str] = []
        monkeypatch.setattr(trigger.log, "info", lambda text, *more: said.append(text % more))
        with told.supervised():
            watching = asyncio.create_task(fired(trigger))
            await asyncio.sleep(0.3)
            assert not watching.done()
            assert len(said) == 1  # one line every ten seconds
            assert "step 120, 7 rows/s" in said[0]
            assert "clicks 75%, views 25%" in said[0]
        return await watching

    assert wait(follow()) == [{"state": "lost"}]


def test_a_job_elsewhere_is_followed_by_beats(
    home: Home, told: ToldJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_another_host(told)
    now = 0.0
    monkeypatch.setattr(stored_jobs, "time", SimpleNamespace(monotonic=lambda: now))

    async def follow() -> list[Any]:
        nonlocal now
        watching = asyncio.create_task(fired(job_trigger(home)))
        while now < 2 * EXPIRED_SECONDS:
            told.beat()
            now += 2
            await asyncio.sleep(0.05)
        assert not watching.done()
        while not watching.done():
            now += 2
            await asyncio.sleep(0.05)
        return await watching

    assert wait(follow()) == [{"state": "lost"}]


def test_a_job_that_takes_too_long_or_has_ended_or_is_gone(home: Home, told: ToldJob) -> None:
    with told.supervised():
        assert wait(fired(job_trigger(home, seconds=0.1))) == [{"state": "deadline"}]
    for state in ("succeeded", "failed", "cancelled"):
        told.tell(state)
        assert wait(fired(job_trigger(home))) == [{"state": state}]
    assert wait(fired(job_trigger(Home(home.root.with_name("other"))))) == [{"state": "unreadable"}]


def test_a_person_ends_the_job_and_a_triggerer_does_not(home: Home, told: ToldJob) -> None:
    trigger = job_trigger(home)
    wait(trigger.cleanup())
    assert told.row.state == "running"
    wait(trigger.on_kill())  # nobody supervises it: it is cancelled on the spot
    assert (told.row.state, told.row.status.cancelled_by) == ("cancelled", 1)


def test_a_person_cannot_end_what_a_newer_attempt_owns(home: Home, told: ToldJob) -> None:
    told.take_over()
    with told.supervised():
        wait(job_trigger(home, epoch=1).on_kill())
    assert (told.row.cancel_epoch, told.row.state) == (None, "running")


def test_a_person_hears_of_what_did_not_end(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_end, "CANCEL_SECONDS", 0.1)
    ToldJob(home).tell("running")
    take_away(home)
    trigger = job_trigger(home)
    said: list[str] = []
    monkeypatch.setattr(trigger.log, "error", lambda text, *more: said.append(text % more))
    wait(trigger.on_kill())
    monkeypatch.setattr("forebay.operators.triggers.job._KILL_SECONDS", 0.1)
    monkeypatch.setattr(JobHandle, "cancel", lambda *_: time.sleep(0.5))
    wait(trigger.on_kill())
    assert ["has lost its database" in said[0], "no answer yet" in said[1]] == [True, True]
    assert all("`forebay cancel ads` ends it" in line for line in said)


def test_a_supervised_job_is_asked_to_end(home: Home, told: ToldJob) -> None:
    async def end() -> int | None:
        ending = asyncio.create_task(job_trigger(home).on_kill())
        while (asked := told.row.cancel_epoch) is None:
            await asyncio.sleep(0.02)
        told.tell("cancelled", cancelled_by=asked)
        await ending
        return asked

    with told.supervised():
        assert wait(end()) == 1


@pytest.fixture
def lease(home: Home) -> FileLock:
    """That of a job which trains the line."""
    record_format(home)
    home.line("ads").mkdir(parents=True)
    made = FileLock(home.line("ads") / "lease.lock")
    assert made.acquire(1.0)
    return made


def test_a_turn_comes_when_the_window_before_is_trained_and_the_line_free(
    home: Home, lease: FileLock
) -> None:
    async def train() -> list[Any]:
        watching = asyncio.create_task(fired(turn_trigger(home)))
        await asyncio.sleep(0.1)
        ToldJob(home).link(10)
        await asyncio.sleep(0.2)
        assert not watching.done()  # it is trained, and its job holds the line still
        lease.release()
        return await watching

    assert wait(train()) == [{"state": "changed"}]


def test_a_line_that_gets_free_is_no_news_while_the_window_before_is_to_come(
    home: Home, lease: FileLock
) -> None:
    async def train_another() -> list[Any]:
        trigger = turn_trigger(home, seconds=0.5)
        trigger.seen = {"links": []}
        watching = asyncio.create_task(fired(trigger))
        await asyncio.sleep(0.1)
        lease.release()
        return await watching

    assert wait(train_another()) == [{"state": "look"}]


def test_a_failed_run_is_worth_a_look(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(home.root))

    async def fail(dag_id: str) -> list[Any]:
        watching = asyncio.create_task(fired(turn_trigger(home, seconds=1.5)))
        await asyncio.sleep(0.1)
        wake_waiting_windows(dag_id)
        return await watching

    assert wait(fail("clicks")) == [{"state": "look"}]
    assert wait(fail("ads")) == [{"state": "changed"}]


def test_a_change_while_no_triggerer_ran_is_not_missed(home: Home) -> None:
    _, arguments = turn_trigger(home).serialize()
    ToldJob(home).link(10)
    assert wait(fired(TurnTrigger(**arguments))) == [{"state": "changed"}]


def test_what_a_look_inherits(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = ToyStage.make(tmp_path / "toy", source=[found("listed")])
    for name in ("ACME_TOKEN", "OTHERS_TOKEN"):
        monkeypatch.setenv(name, "planted")
    _, arguments = ready_trigger(toy, home).serialize()
    arguments["variables"] = ["ACME_*"]
    assert wait(fired(ReadyTrigger(**arguments))) == [{"state": "ready"}]
    environ = json.loads((toy.folder / "calls.jsonl").read_text())["environ"]
    assert environ["ACME_TOKEN"] == "planted"
    assert "OTHERS_TOKEN" not in environ


def test_a_source_becomes_ready(home: Home, tmp_path: Path) -> None:
    answers = [found("waiting", "no marker"), found("waiting", "no marker"), found("listed")]
    toy = ToyStage.make(tmp_path / "toy", source=answers)
    assert wait(fired(ready_trigger(toy, home))) == [{"state": "ready"}]
    assert toy.calls("source") == [["ads", "2026-03-01", "clicks", "--ready"]] * 3


def test_a_look_that_comes_to_no_good_end_wakes_the_task(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = ToyStage.make(tmp_path / "toy", source=[found("waiting", "no marker")])
    assert wait(fired(ready_trigger(toy, home, 0.6))) == [{"state": "deadline"}]
    toy.answer(source=[{"code": 3, "says": ["error: corrupt"]}])
    assert wait(fired(ready_trigger(toy, home))) == [{"state": "failed"}]
    toy.answer(source=[{"seconds": 60}])
    monkeypatch.setattr(ready, "LOOK_DEADLINE_SECONDS", 0.5)
    assert wait(fired(ready_trigger(toy, home))) == [{"state": "failed"}]
    missing = ready_trigger(toy, home)
    missing.python = "/nowhere/python"
    assert wait(fired(missing)) == [{"state": "failed"}]


def test_a_look_ends_with_its_trigger(home: Home, tmp_path: Path) -> None:
    """A person marks the task, or the triggerer stops, while a look is under way."""
    toy = ToyStage.make(tmp_path / "toy", source=[{"seconds": 60}])
    # Other tests of this process may have left a broker behind that serves them all.
    others = {child.pid for child in psutil.Process(os.getpid()).children()}

    async def cancel() -> set[int]:
        watching = asyncio.create_task(fired(ready_trigger(toy, home)))
        while not toy.calls("source"):
            await asyncio.sleep(0.05)
        looks = {child.pid for child in psutil.Process(os.getpid()).children()} - others
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        await asyncio.sleep(0.2)
        return looks

    looks = wait(cancel())
    assert looks
    assert not {child.pid for child in psutil.Process(os.getpid()).children()} & looks
