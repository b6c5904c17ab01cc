"""Jobs as rows: what holds on every kind of database, for owners, submitters and supervisors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.jobs import request, store_job
from support.there import there
from support.toy_roles.jobs import TESTS, eventually

from forebay.errors import FencedError, InfrastructureError, UsageError
from forebay.executors.job import job_changes
from forebay.executors.job import submit as submit_module
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.host import LocalJob
from forebay.executors.job.stored_jobs import is_silent, jobs_of, jobs_owned, stored_job
from forebay.executors.job.submit import attach, submit
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.system.files.locks import FileLock, locked

LONE = (sys.executable, "-P", "-m", "support.lone_supervisor")
DAY = "2026-03-01"
RUN = "ads/manual__1"


def answer(home: Home, epoch: int = 1) -> Any:
    """As the supervisor of a submission looks for a request to cancel."""
    return database_of(home).transact(lambda rows: job_changes.answer_cancel(rows, "j1", epoch))


def ask_to_cancel(home: Home, epoch: int) -> None:
    database_of(home).transact(lambda rows: job_changes.request_cancel(rows, "j1", epoch))


def submit_it(root: str, results: Any = None) -> None:
    handle = submit(Home(Path(root)), request(Home(Path(root)), "j1", {DAY: 1}), LONE, RUN)
    if results is not None:
        results.put(handle.epoch)


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def then_dies(real: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any, **more: Any) -> Any:
        real(*arguments, **more)
        die()

    return called


def dies_at(step: str, root: str) -> None:
    """A submitter that is killed once this step is done."""
    if step == "lock":
        submit_module._Submission._store = die  # type: ignore[method-assign,assignment]
    elif step == "folder":
        JobFolder.prepare = then_dies(JobFolder.prepare)  # type: ignore[method-assign]
    elif step == "row":
        LocalJob.start = die  # type: ignore[method-assign,assignment]
    else:
        LocalJob.start = then_dies(LocalJob.start)  # type: ignore[method-assign]
    submit_it(root)


class TestJobs:
    def test_a_submission_is_stored_with_all_that_it_is_looked_up_by(self, home: Home) -> None:
        made = request(home, "j1", {"2026-03-02": 4, DAY: 7}, line="trial", publishes=False)
        assert store_job(made, run=RUN) == 1
        (found,) = jobs_of(home, "ads", "trial")
        row = found.row
        assert (row.job_id, row.pipeline, row.line, row.publishes) == ("j1", "ads", "trial", False)
        assert (row.state, row.epoch, row.cancel_epoch) == ("submitted", 1, None)
        assert row.fingerprint == made.fingerprint
        assert [tuple(window) for window in found.windows] == [("2026-03-02", 4), (DAY, 7)]
        assert [job.job_id for job in jobs_owned(home, RUN)] == ["j1"]

    def test_every_owner_is_newer_than_those_before(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running", run=RUN)
        assert attach(home, "j1").epoch == 2
        assert jobs_owned(home, RUN) == [], "nobody said whose it is now"
        assert attach(home, "j1", "ads/other").epoch == 3
        assert jobs_owned(home, RUN) == []
        assert [job.row.epoch for job in jobs_owned(home, "ads/other")] == [3]
        with pytest.raises(UsageError, match="no job 'j9'"):
            attach(home, "j9")

    def test_only_the_newest_owner_asks_for_the_end(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running")
        attach(home, "j1")
        with pytest.raises(FencedError, match=r"newer owner \(epoch 2\): epoch 1 cannot"):
            ask_to_cancel(home, 1)
        assert answer(home) is None
        ask_to_cancel(home, 2)
        assert answer(home) == (2, True)
        assert stored_job(home, "j1").row.status.cancelled_by == 2
        assert answer(home) is None

    def test_an_attachment_outdoes_a_request_that_is_not_accepted_yet(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running")
        ask_to_cancel(home, 1)
        attach(home, "j1")
        assert answer(home) == (1, False)
        assert stored_job(home, "j1").row.status.cancelled_by is None

    def test_what_was_accepted_is_not_taken_back(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running")
        ask_to_cancel(home, 1)
        assert answer(home) == (1, True)
        attach(home, "j1")
        with locked(JobFolder(home.job("j1")).supervisor_lock, 1.0):
            JobHandle(home, "j1", 2).cancel(5)  # its end is certain already
        assert stored_job(home, "j1").row.status.cancelled_by == 1

    def test_an_end_stays_as_it_is(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "failed")
        JobHandle(home, "j1", 1).cancel()
        row = stored_job(home, "j1").row
        assert (row.state, row.cancel_epoch) == ("failed", None)

    def test_a_supervisor_of_an_earlier_submission_is_fenced(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running")
        before = stored_job(home, "j1").row.status
        assert store_job(request(home, "j1", {DAY: 1})) == 2
        for late in (
            lambda rows: job_changes.report(rows, before, None),
            lambda rows: job_changes.beat(rows, "j1", 1, "{}"),
        ):
            with pytest.raises(FencedError, match="was submitted again after epoch 1"):
                database_of(home).transact(late)
        assert stored_job(home, "j1").row.state == "submitted"

    def test_after_a_lost_supervisor_the_counts_continue(self, home: Home) -> None:
        counts = {"supervisor": 0, "driver": 0, "data": 2, "trainer": 0}
        more = {"restarts": counts, "ends": {"data-0": 2}, "started_at": "2026-03-02T00:00:00Z"}
        store_job(request(home, "j1", {DAY: 1}), "running", **more)
        assert stored_job(home, "j1").status.state == "lost"
        store_job(request(home, "j1", {DAY: 1}))
        status = stored_job(home, "j1").row.status
        assert (status.restarts, status.ends) == (counts | {"supervisor": 1}, {"data-0": 2})
        store_job(request(home, "j1", {DAY: 1}))
        again = stored_job(home, "j1").row.status
        assert again.restarts == status.restarts, "one that never ran lost no supervisor"

    @pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled"])
    def test_after_an_end_everything_is_new(self, home: Home, end: str) -> None:
        store_job(request(home, "j1", {DAY: 1}), end, restarts={"data": 2}, ends={"data-0": 2})
        assert store_job(request(home, "j1", {"2026-03-02": 2})) == 2
        (found,) = jobs_of(home, "ads")
        assert (set(found.row.status.restarts.values()), found.row.status.ends) == ({0}, {})
        assert [tuple(window) for window in found.windows] == [("2026-03-02", 2)]

    def test_a_heartbeat_counts_and_keeps_the_newest_progress(self, home: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running")
        for told in ('{"step": 1}', None, '{"step": 3}', None):
            database_of(home).transact(
                lambda rows, told=told: job_changes.beat(rows, "j1", 1, told)
            )
        row = stored_job(home, "j1").row
        assert (row.beats, row.progress) == (5, '{"step": 3}')
        assert row.beat_at is not None

    def test_two_submitters_at_once_share_one_supervisor(self, home: Home) -> None:
        start = multiprocessing.get_context("spawn")
        results = start.Queue()
        submitters = [start.Process(target=submit_it, args=(str(home.root), results)) for _ in "12"]
        for submitter in submitters:
            submitter.start()
        epochs = sorted(results.get(timeout=60) for _ in submitters)
        for submitter in submitters:
            submitter.join(60)
        assert epochs == [1, 2]
        job = stored_job(home, "j1")
        assert (job.status.state, job.row.status.epoch) == ("running", 1)
        assert len(processes(home)) == 1

    @pytest.mark.parametrize("step", ["lock", "folder", "row", "process"])
    def test_a_submitter_that_is_killed_is_in_nobodys_way(self, home: Home, step: str) -> None:
        submitter = multiprocessing.get_context("spawn").Process(
            target=dies_at, args=(step, str(home.root))
        )
        submitter.start()
        submitter.join(60)
        assert submitter.exitcode == -signal.SIGKILL
        left = jobs_of(home, "ads")
        if step in {"lock", "folder"}:
            assert left == []
        elif step == "row":
            assert [job.status.state for job in left] == ["lost"], "at once, not after a grace"
        epoch = submit(home, request(home, "j1", {DAY: 1}), LONE).epoch
        assert epoch == len(left) + 1
        job = stored_job(home, "j1")
        assert (job.status.state, job.status.restarts["supervisor"]) == ("running", 0)
        assert len(processes(home)) == 1
        JobHandle(home, "j1", epoch).cancel()
        assert JobHandle(home, "j1", epoch).wait(20).state == "cancelled"

    def test_another_request_is_refused_while_it_runs(self, home: Home) -> None:
        submit_it(str(home.root))
        other = request(home, "j1", {DAY: 2})
        with pytest.raises(InfrastructureError, match="is already running with another request"):
            submit(home, other, LONE)
        with pytest.raises(UsageError, match="job j1 trains line 'main' of pipeline 'ads'"):
            submit(home, request(home, "j1", {DAY: 1}, line="trial"), LONE)
        assert stored_job(home, "j1").row.epoch == 1


def processes(home: Home) -> list[psutil.Process]:
    """Supervisors of this home's jobs."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if (
                process.environ().get("FOREBAY_HOME") == str(home.root)
                and "support.lone_supervisor" in process.cmdline()
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
    return found


@pytest.fixture(autouse=True)
def swept(home: Home, other: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    yield
    for root in (home, other):
        for process in processes(root):
            process.kill()
    eventually(lambda: not processes(home))


@pytest.fixture
def other(home: Home) -> Home:
    """Another home folder that shares nothing but the database, if that is on a server."""
    return Home(home.root.with_name("another host"))


@pytest.mark.parametrize("home", ["postgresql"], indirect=True)
class TestTwoHosts:
    def test_another_host_attaches_to_a_job_and_ends_it(self, home: Home, other: Home) -> None:
        submit_it(str(home.root))
        made = request(other, "j1", {DAY: 1})
        handle = submit(other, made, LONE)
        assert handle.epoch == 2
        assert len(processes(home)) == 1
        assert processes(other) == []
        handle.cancel()
        assert handle.wait(20).state == "cancelled"
        taken = submit(other, made, LONE)
        assert (taken.epoch, stored_job(other, "j1").is_here) == (3, True)
        assert not stored_job(home, "j1").is_here
        taken.cancel()
        taken.wait(20)

    def test_a_job_of_a_host_that_is_gone_is_taken_over(
        self, home: Home, other: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        submit_it(str(home.root))
        (supervisor,) = processes(home)
        supervisor.suspend()
        monkeypatch.setattr(submit_module, "is_silent", partial(is_silent, seconds=1.5))
        taken = submit(other, request(other, "j1", {DAY: 1}), LONE)
        assert stored_job(other, "j1").is_here
        assert stored_job(other, "j1").row.run_epoch == taken.epoch == 2
        supervisor.resume()
        eventually(lambda: processes(home) == [])
        assert len(processes(other)) == 1, "it was not ended by whoever woke"
        taken.cancel()
        taken.wait(20)

    def test_one_that_shows_a_sign_of_life_at_last_is_not(self, home: Home, other: Home) -> None:
        store_job(request(home, "j1", {DAY: 1}), "running")
        mine = request(other, "j1", {DAY: 1})

        def taken(seen: Any) -> int | None:
            return database_of(other).transact(
                lambda rows: job_changes.submit(rows, mine, "there", RUN, seen)
            )

        seen = stored_job(other, "j1").row
        database_of(home).transact(lambda rows: job_changes.beat(rows, "j1", 1, None))
        assert (taken(seen), taken(stored_job(other, "j1").row)) == (None, 2)

    def test_a_death_is_not_seen_from_another_host(self, home: Home, other: Home) -> None:
        submit_it(str(home.root))
        (supervisor,) = processes(home)
        supervisor.kill()
        eventually(lambda: stored_job(home, "j1").status.state == "lost")
        assert stored_job(other, "j1").status.state == "running"
        report = '{"window": "w", "step": 9}'
        database_of(home).transact(lambda rows: job_changes.beat(rows, "j1", 1, report))
        assert there(stored_job(other, "j1").progress).step == 9
        assert stored_job(home, "j1").progress is None, "its own trainer has reported nothing"
        assert not FileLock(JobFolder(other.job("j1")).supervisor_lock).path.exists()
