"""The thread that reads for all deferred windows: once a second, and never in the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, update
from support.database_files import bring_back, take_away
from support.jobs import ToldJob, request, store_job
from support.toy_roles.jobs import eventually

from forebay.errors import UsageError
from forebay.home.database.format import record_format
from forebay.home.database.open import database_of
from forebay.home.database.tables import jobs
from forebay.home.paths import Home
from forebay.operators.triggers import poll
from forebay.operators.triggers.base import WakingTrigger
from forebay.operators.triggers.job import JobTrigger
from forebay.operators.triggers.turn import TurnTrigger
from forebay.system.files.locks import FileLock

SOON = 20.0
THREAD = "forebay-poll"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(poll, "LOOK_SECONDS", 0.05)
    yield
    eventually(lambda: not polling())


def polling() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work(), SOON)

    return asyncio.run(bounded())


def shared(home: Home) -> dict[str, Any]:
    return {"home": str(home.root), "deadline": time.time() + SOON, "not_before": 0.0}


def job_trigger(home: Home, job_id: str = "ads.main.2026-03-01.g1") -> JobTrigger:
    return JobTrigger(job_id=job_id, epoch=1, **shared(home))


def turn_trigger(home: Home, pipeline: str, before: str, **seen: Any) -> TurnTrigger:
    of: Any = {"dag_id": pipeline, "pipeline": pipeline, "line": "main", "before": before}
    seen = {"held": False, "links": [], "failed_at": 0.0, **seen}
    return TurnTrigger(seen=seen, **of, **shared(home))


def started(trigger: WakingTrigger) -> asyncio.Task[Any]:
    async def fired() -> Any:
        return [each.payload async for each in trigger.run()]

    return asyncio.create_task(fired())


def heard(trigger: WakingTrigger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    for level in ("info", "warning"):
        monkeypatch.setattr(trigger.log, level, lambda text, *more: said.append(text % more))
    return said


@contextmanager
def running_jobs(home: Home, count: int) -> Iterator[list[str]]:
    """Jobs whose supervisors live, which is to say that their locks are held."""
    names, locks = [f"ads.main.w{number}.g1" for number in range(count)], []
    for name in names:
        store_job(request(home, name, {"w": 1}), "running")
        locks.append(FileLock(home.job(name) / "supervisor.lock"))
        assert locks[-1].acquire(1.0)
    yield names
    for lock in locks:
        lock.release()


@contextmanager
def statements() -> Iterator[Counter[tuple[str, str]]]:
    """How many were executed, by thread and first word."""
    counted: Counter[tuple[str, str]] = Counter()

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        counted[threading.current_thread().name, statement.split(maxsplit=1)[0]] += 1

    event.listen(Engine, "before_cursor_execute", count)
    yield counted
    event.remove(Engine, "before_cursor_execute", count)


def counting_looks(monkeypatch: pytest.MonkeyPatch, kind: type[Any]) -> list[None]:
    """Grows with every look of the thread."""
    looks: list[None] = []
    real = kind.read_all

    def read_all(*given: Any) -> Any:
        looks.append(None)
        return real(*given)

    monkeypatch.setattr(kind, "read_all", read_all)
    return looks


@pytest.mark.parametrize(("kind", "queries"), [(JobTrigger, 1), (TurnTrigger, 3)])
def test_many_are_read_in_as_few_queries_as_one(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: type[WakingTrigger], queries: int
) -> None:
    looks = counting_looks(monkeypatch, kind)
    with running_jobs(home, 40 if kind is JobTrigger else 1) as names:
        triggers: list[WakingTrigger] = [job_trigger(home, name) for name in names]
        if kind is TurnTrigger:
            triggers = [turn_trigger(home, f"p{n % 20}", f"w{n}") for n in range(200)]

        async def follow() -> Counter[tuple[str, str]]:
            with statements() as counted:
                watching = [started(each) for each in triggers]
                while counted[THREAD, "BEGIN"] < 6:
                    await asyncio.sleep(0.01)
                assert len(polling()) == 1
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
            return counted

        counted = run(follow)
    assert len(looks) >= 4
    # Opening the database asks which home it is, once: a transaction of its own.
    assert counted[THREAD, "BEGIN"] <= len(looks) + 1
    assert counted[THREAD, "SELECT"] <= queries * len(looks) + 2
    assert {thread for thread, _ in counted} == {THREAD}, "never in the event loop"


def test_each_turn_hears_of_its_own_window(home: Home) -> None:
    record_format(home)
    ToldJob(home).link(10)  # window 2026-03-01 of pipeline ads

    async def wait() -> Any:
        others = [
            started(turn_trigger(home, "ads", "2026-03-02")),
            started(turn_trigger(home, "clicks", "2026-03-01")),
            started(turn_trigger(home, "ads", "2026-03-01", links=[1])),
        ]
        found = await started(turn_trigger(home, "ads", "2026-03-01"))
        assert not any(each.done() for each in others)
        for each in others:
            each.cancel()
        return found

    assert run(wait) == [{"state": "changed"}]


def test_nobody_is_read_for_after_a_cancel(home: Home) -> None:
    with running_jobs(home, 2) as names:

        async def follow() -> None:
            with statements() as counted:
                watching = [started(job_trigger(home, name)) for name in names]
                while not counted:
                    await asyncio.sleep(0.01)
                for each in watching:
                    each.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                await asyncio.to_thread(eventually, lambda: not polling())
                before = counted.total()
                await asyncio.sleep(0.2)
                assert counted.total() == before
                again = started(job_trigger(home, names[0]))  # and one that comes later is served
                while counted.total() == before:
                    await asyncio.sleep(0.01)
                again.cancel()

        run(follow)


@pytest.mark.parametrize("turns", range(5))
def test_a_cancel_that_comes_together_with_news_is_no_news(home: Home, turns: int) -> None:
    ToldJob(home).tell("running")

    async def follow() -> None:
        watch = poll.Watch(job_trigger(home))
        waiting = asyncio.create_task(watch.next(20))
        await asyncio.sleep(0)
        watch.look(UsageError("no such job"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if waiting.cancel():
            with pytest.raises(asyncio.CancelledError):
                await waiting

    run(follow)


def test_a_loop_that_ended_is_forgotten(home: Home) -> None:
    ToldJob(home).tell("running")
    # Kept: a context that nothing refers to is left at once.
    watched = poll.poll_of(str(home.root)).watched(job_trigger(home))

    async def begin() -> None:
        watched.__enter__()

    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(begin())
        assert polling()
        time.sleep(0.2)  # several looks
        assert polling()
    eventually(lambda: not polling())
    watched.__exit__(None, None, None)


def test_a_database_that_is_away_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ToldJob(home)
    told.tell("running")
    job, turn = job_trigger(home), turn_trigger(home, "ads", "2026-03-01")
    said = heard(job, monkeypatch), heard(turn, monkeypatch)
    take_away(home)

    async def wait() -> list[Any]:
        watching = [started(job), started(turn)]
        while not all(said):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # several looks
        assert [len(lines) for lines in said] == [1, 1], "it is said once"
        bring_back(home)
        with told.supervised():
            while any(len(lines) < 2 for lines in said):
                await asyncio.sleep(0.01)
            assert not any(each.done() for each in watching)
            told.link(10)
            told.tell("succeeded")
            return await asyncio.gather(*watching)

    assert run(wait) == [[{"state": "succeeded"}], [{"state": "changed"}]]
    (away, back, *_), (turn_away, turn_back) = said
    assert away.startswith("job ads.main.2026-03-01.g1 cannot be read at the moment, waiting: ")
    assert "has lost its database" in away
    assert turn_away.startswith("line 'main' of pipeline 'ads' cannot be read at the moment")
    assert back == "job ads.main.2026-03-01.g1 can be read again"
    assert turn_back == "line 'main' of pipeline 'ads' can be read again"


def test_who_waits_for_a_database_still_ends_at_the_deadline(home: Home) -> None:
    ToldJob(home)
    take_away(home)
    job, turn = job_trigger(home), turn_trigger(home, "ads", "2026-03-01")
    job.deadline = turn.deadline = time.time() + 0.3

    async def wait() -> list[Any]:
        return await asyncio.gather(started(job), started(turn))

    assert run(wait) == [[{"state": "deadline"}], [{"state": "look"}]]


def test_other_homes_are_read(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Home(tmp_path / "other")
    ToldJob(home).tell("running")
    ToldJob(other).tell("succeeded")
    take_away(home)
    here = job_trigger(home)
    said = heard(here, monkeypatch)

    async def wait() -> Any:
        waiting = started(here)
        while not said:
            await asyncio.sleep(0.01)
        found = await started(job_trigger(other))
        assert not waiting.done()
        waiting.cancel()
        return found

    assert run(wait) == [{"state": "succeeded"}]


def test_the_loop_goes_on_while_the_database_does_not_answer(home: Home) -> None:
    """The read ends only because the loop has run a hundred times meanwhile."""
    ToldJob(home).tell("succeeded")
    hanging, answers = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        hanging.set()
        assert answers.wait(SOON)

    async def wait() -> Any:
        watching = [started(job_trigger(home)) for _ in range(200)]
        waiting = started(turn_trigger(home, "ads", "2026-03-01"))
        while not hanging.is_set():
            await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert not any(each.done() for each in watching)
        late = started(job_trigger(home))  # nor does it hold up whoever comes or goes meanwhile
        await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        answers.set()
        return await asyncio.gather(*watching, late)

    event.listen(Engine, "before_cursor_execute", hang)
    try:
        assert run(wait) == [[{"state": "succeeded"}]] * 201
    finally:
        event.remove(Engine, "before_cursor_execute", hang)


def test_a_row_that_cannot_be_understood_ends_its_own_trigger_only(home: Home) -> None:
    with running_jobs(home, 2) as (damaged, other):
        damage = update(jobs).where(jobs.c.job_id == damaged).values(document="{")
        database_of(home).transact(lambda rows: rows.execute(damage))

        async def follow() -> None:
            watching = started(job_trigger(home, other))
            assert await started(job_trigger(home, damaged)) == [{"state": "unreadable"}]
            assert not watching.done()
            watching.cancel()

        run(follow)


def test_what_breaks_the_read_breaks_no_more(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ToldJob(home).tell("succeeded")

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    async def both() -> list[Any]:
        watching = [started(job_trigger(home)) for _ in range(2)]
        return await asyncio.gather(*watching, return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(JobTrigger, "read_all", broken)
        assert [type(each) for each in run(both)] == [ZeroDivisionError] * 2
    assert run(both) == [[{"state": "succeeded"}]] * 2


def test_a_forked_child_reads_for_itself(home: Home) -> None:
    with running_jobs(home, 1) as (name,):

        async def follow() -> int:
            watching = started(job_trigger(home, name))
            while not polling():
                await asyncio.sleep(0.01)
            child = os.fork()
            if not child:
                os._exit(in_child(home))
            ended = await asyncio.to_thread(os.waitpid, child, 0)
            watching.cancel()
            return os.waitstatus_to_exitcode(ended[1])

        assert run(follow) == 0


def in_child(home: Home) -> int:
    """Exit code 0 when a trigger fires here, in a loop of this process."""
    fired: list[Any] = []

    async def one() -> None:
        fired.append(await asyncio.wait_for(started(job_trigger(home, "no.such.w.g1")), SOON))

    thread = threading.Thread(target=lambda: asyncio.run(one()))  # this one has a running loop
    thread.start()
    thread.join(SOON)
    return 0 if fired == [[{"state": "unreadable"}]] else 1
