"""What a supervisor stores: soon, the newest state only, and later when the database is away."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.jobs import ToldJob
from support.toy_roles.jobs import eventually

from forebay.errors import ConfigError, DataError, InfrastructureError
from forebay.executors.job import job_changes
from forebay.executors.job.request import JobStatus
from forebay.executors.supervisor import reporter as module
from forebay.executors.supervisor.reporter import StateReporter
from forebay.home.database.base import Database
from forebay.home.database.open import database_of
from forebay.home.paths import Home


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(module, "LOOK_SECONDS", 30.0)


@pytest.fixture
def job(tmp_path: Path) -> ToldJob:
    return ToldJob(Home(tmp_path))


@pytest.fixture
def reporter(job: ToldJob) -> Iterator[StateReporter]:
    made = StateReporter(job.folder, job.row.status)
    yield made
    made.finish(ended(job), 5)


def running(job: ToldJob, **more: Any) -> JobStatus:
    return job.row.status.model_copy(update={"state": "running", **more})


def ended(job: ToldJob, state: str = "succeeded") -> JobStatus:
    return job.row.status.model_copy(update={"state": state})


class Away:
    """A database that does not answer until it is told to."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.calls = 0

    @contextmanager
    def of(self, monkeypatch: pytest.MonkeyPatch, home: Home) -> Iterator[Away]:
        database = database_of(home)
        for name in ("read", "transact"):
            monkeypatch.setattr(database, name, self._around(getattr(database, name)))
        yield self
        self.error = None

    def _around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(work: Any) -> Any:
            if self.error is not None and threading.current_thread().name == "report":
                self.calls += 1
                raise self.error
            return real(work)

        return called


GONE = InfrastructureError("the database cannot be reached")


def test_a_state_is_stored_soon(job: ToldJob, reporter: StateReporter) -> None:
    job.progress(step=7)
    reporter.report(running(job, pids={"driver-0": 5}))
    eventually(lambda: job.row.state == "running")
    assert job.row.status.pids == {"driver-0": 5}
    assert job.row.progress is not None
    assert '"step":7' in job.row.progress
    assert reporter.problem is None


def test_it_beats(job: ToldJob, monkeypatch: pytest.MonkeyPatch, reporter: StateReporter) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)
    reporter.report(running(job))
    eventually(lambda: job.row.beats >= 4)
    (job.folder.path / "progress.json").write_text("{")  # what is damaged stops no heartbeat
    before = job.row.beats
    eventually(lambda: job.row.beats >= before + 2)


def test_a_cancel_is_answered_when_it_is_poked(job: ToldJob, reporter: StateReporter) -> None:
    eventually(lambda: not reporter._poked)
    time.sleep(0.1)  # its first look is over
    cancel = job_changes.request_cancel
    database_of(job.home).transact(lambda rows: cancel(rows, job.job_id, 1))
    time.sleep(0.1)
    assert reporter.cancelled_by is None, "it does not look all the time"
    reporter.look()
    eventually(lambda: reporter.cancelled_by == 1)
    assert job.row.status.cancelled_by == 1
    reporter.report(running(job, cancelled_by=None))
    eventually(lambda: job.row.state == "running")
    assert job.row.status.cancelled_by == 1, "no later report takes it back"
    assert reporter.finish(ended(job), 5)
    assert (job.row.state, job.row.status.cancelled_by) == ("cancelled", 1)


def test_somebody_who_cannot_poke_is_heard_too(
    job: ToldJob, monkeypatch: pytest.MonkeyPatch, reporter: StateReporter
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    reporter.look()
    cancel = job_changes.request_cancel
    database_of(job.home).transact(lambda rows: cancel(rows, job.job_id, 1))
    eventually(lambda: reporter.cancelled_by == 1)


def test_an_answer_that_was_stored_although_nothing_came_back_is_kept(
    job: ToldJob, monkeypatch: pytest.MonkeyPatch, reporter: StateReporter
) -> None:
    real = job_changes.answer_cancel

    def lost(rows: Any, job_id: str, run_epoch: int) -> Any:
        return real(rows, job_id, run_epoch) is not None

    database = database_of(job.home)
    transact = database.transact

    def answers(work: Any) -> Any:
        found = transact(work)
        if found is True:
            raise GONE
        return found

    monkeypatch.setattr(job_changes, "answer_cancel", lost)
    monkeypatch.setattr(database, "transact", answers)
    transact(lambda rows: job_changes.request_cancel(rows, job.job_id, 1))
    reporter.look()
    eventually(lambda: reporter.cancelled_by == 1)
    assert job.row.status.cancelled_by == 1


def test_of_states_that_wait_the_newest_is_stored(
    job: ToldJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = StateReporter(job.folder, job.row.status)
    caplog.set_level(logging.INFO)
    with Away(GONE).of(monkeypatch, job.home) as away:
        before = time.monotonic()
        for number in range(5):
            reporter.report(running(job, pids={"driver-0": number}))
        assert time.monotonic() - before < 1, "nobody waits for the database"
        eventually(lambda: away.calls > 3)
        assert reporter.problem is None
        assert job.row.state == "submitted"
    eventually(lambda: job.row.state == "running")
    assert job.row.status.pids == {"driver-0": 4}
    eventually(lambda: "the job's state is stored again" in caplog.messages)
    assert caplog.messages.count(f"the job continues, its state is stored later: {GONE}") == 1
    assert reporter.finish(ended(job), 5)


def test_a_database_that_stays_away_fails_it(job: ToldJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GONE_SECONDS", 0.3)
    reporter = StateReporter(job.folder, job.row.status)
    with Away(GONE).of(monkeypatch, job.home):
        reporter.report(running(job))
        eventually(lambda: reporter.problem is not None)
        assert "could not be stored" in str(reporter.problem)
        assert str(GONE) in str(reporter.problem)
        assert not reporter.finish(ended(job), 60), "it has waited long enough already"
    assert job.row.state == "submitted"


def test_an_end_waits_for_the_database(job: ToldJob, monkeypatch: pytest.MonkeyPatch) -> None:
    reporter, away = StateReporter(job.folder, job.row.status), Away(GONE)
    with away.of(monkeypatch, job.home):
        threading.Timer(0.3, lambda: setattr(away, "error", None)).start()
        assert reporter.finish(ended(job), 20)
    assert job.row.state == "succeeded"


def test_who_has_to_stop_waits_no_longer(job: ToldJob, monkeypatch: pytest.MonkeyPatch) -> None:
    reporter = StateReporter(job.folder, job.row.status)
    with Away(GONE).of(monkeypatch, job.home):
        assert not reporter.finish(ended(job), 0.2)


@pytest.mark.parametrize("error", [ConfigError("another home"), DataError("damaged")])
def test_what_nothing_cures(
    job: ToldJob, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    reporter = StateReporter(job.folder, job.row.status)
    with Away(error).of(monkeypatch, job.home):
        reporter.report(running(job))
        eventually(lambda: reporter.problem is error)
    assert not reporter.finish(ended(job), 5)


def test_a_supervisor_whose_job_was_submitted_again_stores_nothing(job: ToldJob) -> None:
    reporter, late = StateReporter(job.folder, job.row.status), running(job)
    again = ToldJob(job.home)
    reporter.report(late)
    eventually(lambda: reporter.problem is not None)
    assert "was submitted again" in str(reporter.problem)
    assert not reporter.finish(late, 5)
    assert (again.row.state, again.row.epoch) == ("submitted", 2)


def test_a_bug_in_the_thread_is_noticed(job: ToldJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(_database: Database, _work: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(type(database_of(job.home)), "transact", bug)
    reporter = StateReporter(job.folder, job.row.status)
    reporter.report(running(job))
    eventually(lambda: reporter.problem is not None)
    assert "has ended" in str(reporter.problem)
