"""SIGKILL of the rest while windows train in a real Airflow, and 48 windows from one scan.

A task's process, the scheduler, the triggerer, a driver and a trainer: test_airflow_stories.py.
"""

from __future__ import annotations

import time

import pytest
from support.airflow_cluster import Airflow
from support.airflow_data import write_many
from support.airflow_endings import done
from support.airflow_jobs import WindowJob
from support.airflow_kill_story import HELD_AT_ROWS, Attempt, assert_unbroken
from support.airflow_pipelines import HOURS, HOURS_AHEAD, KILLS, MANY_DAYS, WINDOW_SECONDS
from support.airflow_plugin import Tell, Timed
from support.airflow_processes import gone, kill_component, kill_worker
from support.airflow_truth import assert_exact, assert_in_order, generations

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]
NUMBERS = range(5)
# Those that are held while something is killed: nothing trains beside them.
HELD = range(3)
# All 48 windows after another, each with its planning, its job and its evaluation.
HOURS_SECONDS = 1500
ANSWERS_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def backfilled(airflow: Airflow) -> None:
    write_many(airflow.project.root, len(NUMBERS), first=MANY_DAYS)
    airflow.backfill(KILLS, HELD[0], HELD[-1])


def test_a_worker_while_a_window_trains(airflow: Airflow, timed: Timed, tell: Tell) -> None:
    """The LocalExecutor's process and the task's: only missing heartbeats tell of their end."""
    job, run = WindowJob(airflow, KILLS, 0), airflow.run_of(KILLS, 0)
    with job.held(HELD_AT_ROWS, WINDOW_SECONDS) as trainer:
        attempt = Attempt(airflow, run, job)
        left = kill_worker(attempt.task)
        attempt.attaches_again(tell, "a worker's SIGKILL")
        assert gone(left) == []
        assert job.trainers() == [trainer]
    assert_window_is_exact(airflow, job)


@pytest.mark.guarantee(
    "Airflow's API server or DAG processor dies", "nothing; the job and its trainer continue"
)
@pytest.mark.parametrize(("number", "component"), [(1, "api-server"), (2, "dag-processor")])
def test_a_component_while_a_window_trains(
    airflow: Airflow, number: int, component: str, timed: Timed, tell: Tell
) -> None:
    job = WindowJob(airflow, KILLS, number)
    with job.held(HELD_AT_ROWS, WINDOW_SECONDS) as trainer:
        killed = kill_component(airflow, component, KILLS)
        tell(f"{killed.back_seconds:7.1f} s  from the SIGKILL of {component} to the next one")
        since = time.monotonic()
        airflow.until("the API server answers", airflow.answers, ANSWERS_SECONDS, KILLS)
        tell(f"{time.monotonic() - since:7.1f} s  more until the API server answers")
        airflow.heartbeats("scheduler", 2)
        assert job.trainers() == [trainer]
        assert gone(killed.below) == []
    with timed(f"the window goes on after the SIGKILL of {component}"):
        assert_window_is_exact(airflow, job)


def assert_window_is_exact(airflow: Airflow, job: WindowJob) -> None:
    """The window's run ends green, and nothing of its job was started again."""
    run = airflow.ended(KILLS, {job.number: "success"}, WINDOW_SECONDS)[job.number]
    assert airflow.states(run) == done(KILLS)
    assert_unbroken(job)
    assert_exact(airflow.project, KILLS, [job.number])


@pytest.mark.guarantee(
    "the data executor or the supervisor of such a job dies",
    "as above; the task submits a lost job again; read again: as above",
)
@pytest.mark.parametrize(("number", "role"), [(3, "data"), (4, "supervisor")])
def test_a_role_while_a_window_trains(
    airflow: Airflow, number: int, role: str, timed: Timed
) -> None:
    airflow.backfill(KILLS, number, number)
    job = WindowJob(airflow, KILLS, number)
    job.wait_for_rows(HELD_AT_ROWS, WINDOW_SECONDS)
    job.kill(role)
    with timed(f"the window ends after the SIGKILL of its {role}"):
        run = airflow.ended(KILLS, {number: "success"}, WINDOW_SECONDS)[number]
    assert airflow.states(run) == done(KILLS)
    assert job.status()["restarts"][role] == 1
    assert job.processes() == []
    assert_exact(airflow.project, KILLS, [number])


def test_all_were_trained_in_order(airflow: Airflow) -> None:
    found = [generations(airflow.project, KILLS, number) for number in NUMBERS]
    assert found == [[1]] * len(NUMBERS)
    assert_in_order(airflow.project, KILLS, NUMBERS)


def test_48_hourly_windows_from_one_scan(airflow: Airflow, timed: Timed) -> None:
    hours = range(HOURS_AHEAD)
    with timed("backfill of 48 hourly windows, the API's defaults"):
        airflow.backfill(HOURS, hours[0], hours[-1])
        runs = airflow.ended(HOURS, dict.fromkeys(hours, "success"), HOURS_SECONDS)
    for name in HOURS.sources:
        results = [airflow.result(run, f"sources.{name}") for run in runs.values()]
        scanned = [each["windows_scanned"] for each in results if each["storage_calls"]]
        assert scanned == [HOURS_AHEAD], results
    assert_exact(airflow.project, HOURS, hours)
    assert_in_order(airflow.project, HOURS, hours)
