"""What happens to jobs when Airflow says that a run has failed."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.jobs import ToldJob

from forebay.home.database.base import PATIENCE
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.operators.runs.run_failures import last_failures
from forebay.operators.runs.run_listener import on_dag_run_failed, on_dag_run_running
from forebay.operators.timetable import WindowTimetable
from forebay.operators.turn.snapshot import Turn, TurnSnapshot


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToldJob:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    told = ToldJob(Home(tmp_path))
    told.tell("running")
    told.take_over("ads/run")
    return told


def fails(dag_id: str = "ads", run_id: str = "run", task: str = "TrainingExecutorsOperator") -> Any:
    dag = SimpleNamespace(tasks=[SimpleNamespace(task_type=task)])
    return SimpleNamespace(dag_id=dag_id, run_id=run_id, dag=dag)


def failures(job: ToldJob) -> dict[str, int]:
    return database_of(job.home).read(lambda rows: last_failures(rows, ["ads", "clicks"]))


def test_windows_that_wait_for_it_see_each_failure(job: ToldJob) -> None:
    def seen() -> float:
        return TurnSnapshot.take(job.home, Turn("ads", "ads", "main", "2026-02-28")).failed_at

    assert seen() == 0
    for _ in range(2):
        before, newest = time.time(), seen()
        on_dag_run_failed(dag_run=fails())
        assert newest < before <= seen() <= time.time()
    on_dag_run_failed(dag_run=fails(dag_id="clicks"))
    assert seen() < failures(job)["clicks"] / 1_000_000


def test_its_job_ends_and_other_runs_leave_it_alone(job: ToldJob) -> None:
    for other in (fails(run_id="another"), fails(dag_id="clicks")):
        on_dag_run_failed(dag_run=other)
        assert job.row.state == "running"
    on_dag_run_failed(dag_run=fails())
    assert job.row.state == "cancelled"


def test_a_newer_owner_keeps_it(job: ToldJob) -> None:
    job.take_over("ads/newer")
    on_dag_run_failed(dag_run=fails())
    assert job.row.state == "running"


def test_dags_of_others_are_not_looked_at(
    job: ToldJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("FOREBAY_HOME")  # which would be said, were it looked for
    on_dag_run_failed(dag_run=fails(task="BashOperator"))
    assert (job.row.state, failures(job), caplog.text) == ("running", {}, "")


def test_what_cannot_be_ended_is_said_and_breaks_nothing(
    job: ToldJob, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.operators.runs.run_listener._SUPERVISOR_SECONDS", 0.1)
    with job.supervised(), caplog.at_level(logging.WARNING):
        on_dag_run_failed(dag_run=fails())
    assert "run run of ads may still run" in caplog.text
    assert "does not answer" in caplog.text


def test_a_database_that_is_away_does_not_hold_the_scheduler_up(
    job: ToldJob, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for five seconds a run, where many fail at once."""
    monkeypatch.setattr("forebay.operators.runs.run_listener._ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(PATIENCE, "seconds", 2.0)
    monkeypatch.setenv("FOREBAY_DATABASE", "postgresql://me@127.0.0.1:1/facts")
    with caplog.at_level(logging.WARNING):
        before = time.monotonic()
        for run_id in ("run", *(f"run {number}" for number in range(20))):
            on_dag_run_failed(dag_run=fails(run_id=run_id))
        assert time.monotonic() - before < 5, "the first is waited for, for half a second"
        assert "jobs of run run 19 of ads are not cancelled yet" in caplog.text
        for thread in threading.enumerate():
            if thread.name == "forebay-failed":
                thread.join(20)
    assert "jobs of run run 19 of ads may still run" in caplog.text
    assert "`forebay cancel ads` ends them" in caplog.text
    assert "FOREBAY_DATABASE" in caplog.text


@pytest.mark.parametrize(
    ("note", "told"),
    [(None, "window 2026-03-01T07"), ("mine", "mine"), ("", "window 2026-03-01T07")],
)
def test_a_note_names_the_window_unless_a_person_wrote_one(note: str | None, told: str) -> None:
    begin = datetime(2026, 3, 1, 7, tzinfo=UTC)
    dag = SimpleNamespace(timetable=WindowTimetable("1h"))
    run: Any = SimpleNamespace(dag=dag, data_interval_start=begin, note=note)
    on_dag_run_running(dag_run=run)
    assert run.note == told
    run = SimpleNamespace(dag=SimpleNamespace(timetable=None), data_interval_start=begin, note=None)
    on_dag_run_running(dag_run=run)
    assert run.note is None, "a DAG of somebody else"
