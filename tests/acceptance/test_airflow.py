"""Pipelines in a real Airflow: API server, scheduler, DAG processor, triggerer, PostgreSQL.

One Airflow serves all tests of this file, in this order. What needs no watching is started before
the first test, so that windows of several pipelines train side by side; each test then judges its
own. States are Airflow's own, read by REST; rows are compared with counts that share nothing with
Forebay. Kills of the remaining processes, and 48 windows trained, are in tests/chaos.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.airflow_cluster import Airflow, now
from support.airflow_data import MARKED, mark
from support.airflow_endings import (
    STAGES,
    all_tasks,
    assert_ending,
    assert_last_lines,
    done,
    failed_at,
)
from support.airflow_jobs import WindowJob
from support.airflow_kill_story import HELD_AT_ROWS, TRAINING, KillStory
from support.airflow_line_story import LineStory, backfill_by_rest
from support.airflow_pipelines import (
    ADS,
    BESIDE,
    CATCHUP,
    DROPPED,
    FIVE_MISTAKES,
    HOURS,
    HOURS_AHEAD,
    LATE,
    LATE_SECONDS,
    MARKS,
    MISTAKES,
    NAN,
    NARROW,
    NEVER,
    ONE_SLOT,
    RECENT_DAYS,
    TORN,
    WINDOW_SECONDS,
    Pipeline,
    write_yaml,
)
from support.airflow_plugin import Tell, Timed
from support.airflow_processes import gone, modes_of_folders, processes_of
from support.airflow_truth import (
    assert_exact,
    assert_in_order,
    generations,
    link,
    plan,
    served,
)
from support.file_watch import Reads

# Until its wall time on two cores beside the other tests is known, `make chaos` runs it.
pytestmark = pytest.mark.chaos

XCOM_BYTES_MAX = 4_000
# What a person means who asks for a window in its middle, and then for the same one again.
ASKED_AT = {
    "hourly": (NARROW, NARROW.window(0) + timedelta(minutes=37)),
    "daily": (ADS, ADS.window(0) + timedelta(hours=10, minutes=37)),
}


@pytest.fixture(scope="module", autouse=True)
def started(airflow: Airflow) -> dict[str, Any]:
    """Everything that needs no watching; by name, what it is known by."""
    airflow.http.post("/pools", {"name": ONE_SLOT, "slots": 1})
    return {
        "began": time.monotonic(),
        "asked": now(),
        "manual": {name: airflow.trigger(*asked) for name, asked in ASKED_AT.items()},
        "late": airflow.backfill(LATE, 0, 2),
        "never": airflow.backfill(NEVER, 0, 0),
        "torn": airflow.backfill(TORN, 0, 2),
        "nan": airflow.backfill(NAN, 0, 1),
    }


def test_it_starts(airflow: Airflow, tell: Tell) -> None:
    tell(f"{airflow.started_seconds:7.1f} s  `forebay up`, from nothing to all components healthy")
    status = json.loads(airflow.project.forebay("status", "--output", "json").stdout)
    assert status["healthy"]
    assert {each["component"] for each in status["components"]} == set(airflow.components())
    assert airflow.api.import_errors() == []
    dags = {dag["dag_id"]: dag for dag in airflow.api.dags()}
    assert {"ads", "narrow", "catchup", "kills"} <= set(dags)
    assert not any(dag["is_paused"] for dag in dags.values())


def test_mark_failed_pause_and_unpause(airflow: Airflow, timed: Timed) -> None:
    job = WindowJob(airflow, MARKS, 0)
    run_id = airflow.trigger(MARKS, MARKS.window(0))
    with timed("mark failed while it trains, until its processes have ended"):
        with job.held(HELD_AT_ROWS, WINDOW_SECONDS):
            airflow.task_is(MARKS, airflow.run(MARKS, run_id), TRAINING, "running", WINDOW_SECONDS)
            # Running is what Airflow says before the task's own code has begun to.
            airflow.until("training follows the job", lambda: job.epoch() > 1, 60, MARKS)
            processes = job.processes()
            assert len(processes) >= 4, processes
            airflow.api.set_run_state(MARKS.name, run_id, "failed")
        assert gone(processes) == []
    run = airflow.ended(MARKS, {0: "failed"}, 30)[0]
    airflow.task_is(MARKS, run, TRAINING, "failed", 30)
    assert_ending(airflow, "marked failed while it trains", MARKS, run, 0)
    assert job.status()["state"] == "cancelled"

    with timed("paused: cleared and not begun; unpaused: done"):
        airflow.api.pause(MARKS.name, paused=True)
        airflow.api.clear(MARKS.name, run_id)
        airflow.heartbeats("scheduler", 3)
        assert_ending(airflow, "cleared while paused", MARKS, airflow.run(MARKS, run_id), 0)
        since = now()
        airflow.api.pause(MARKS.name, paused=False)
        run = airflow.ended(MARKS, {0: "success"}, WINDOW_SECONDS, since)[0]
    assert_ending(airflow, "unpaused", MARKS, run, 0)
    assert_exact(airflow.project, MARKS, [0])
    assert link(airflow.project, MARKS, 0)["resumed_from_step"] > 0, "it began from nothing"


def test_manual_runs_mean_the_window_that_holds_them(
    airflow: Airflow, started: Mapping[str, Any], timed: Timed, tell: Tell
) -> None:
    for name, (pipeline, asked) in ASKED_AT.items():
        fresh = airflow.ended(pipeline, {0: "success"}, WINDOW_SECONDS)[0]
        assert fresh.run_id == started["manual"][name]
        assert fresh.logical_date == asked
        assert_ending(airflow, f"manual run at 10:37, {name}, fresh", pipeline, fresh, 0)
        assert_exact(airflow.project, pipeline, [0])
    tell(f"{time.monotonic() - started['began']:7.1f} s  manual runs, beside all that was started")
    for name, (pipeline, asked) in ASKED_AT.items():
        with timed(f"manual run of a window done already, {name}"):
            again(airflow, pipeline, name, asked + timedelta(minutes=1))


def again(airflow: Airflow, pipeline: Pipeline, name: str, asked: datetime) -> None:
    """Ask for a window that is done: green in seconds, and the log says how to do it again."""
    run_id = airflow.trigger(pipeline, asked)
    airflow.until(
        "it is over", lambda: airflow.run(pipeline, run_id).state == "success", 60, pipeline
    )
    run = airflow.run(pipeline, run_id)
    assert_ending(airflow, f"manual run at 10:38, {name}, done already", pipeline, run, 0)
    said = airflow.log(run, "timer")
    words = ("trained already", "clear this run", '{"reprocess": true}')
    assert [word for word in words if word not in said] == [], said


def test_catchup_after_the_scheduler_was_down(
    airflow: Airflow, started: Mapping[str, Any], tell: Tell
) -> None:
    """Before Airflow started, the first of the windows was trained by `forebay run`."""
    last = RECENT_DAYS - 1
    runs = airflow.ended(CATCHUP, dict.fromkeys(range(RECENT_DAYS), "success"), WINDOW_SECONDS)
    tell(f"{time.monotonic() - started['began']:7.1f} s  catchup of {last} windows, the same")
    assert len(airflow.runs(CATCHUP)) == RECENT_DAYS, "it ran windows that are not over"
    assert {run.run_type for run in runs.values()} == {"scheduled"}
    assert_ending(airflow, "catchup, trained by hand before", CATCHUP, runs[0], 0)
    for number in range(1, RECENT_DAYS):
        kind = "catchup, missed while the scheduler was down"
        assert_ending(airflow, kind, CATCHUP, runs[number], number)
    assert_exact(airflow.project, CATCHUP, range(RECENT_DAYS))
    assert_in_order(airflow.project, CATCHUP, range(RECENT_DAYS))
    assert served(airflow.project, CATCHUP) == (CATCHUP.key(last), 1)


def test_a_late_source_holds_its_window_and_no_other(
    airflow: Airflow, started: Mapping[str, Any], timed: Timed
) -> None:
    waiting, held = airflow.run_of(LATE, 1), "sources.marked"
    airflow.task_is(LATE, waiting, held, "deferred", WINDOW_SECONDS)
    airflow.ended(LATE, {0: "success"}, WINDOW_SECONDS)
    behind = airflow.run_of(LATE, 2)
    airflow.task_is(LATE, behind, "sink", "success", WINDOW_SECONDS)
    why = json.loads(
        airflow.project.forebay("why", LATE.name, LATE.key(1), "--output", "json").stdout
    )
    assert why["state"] == "waiting"
    assert why["because"] in airflow.log(waiting, held)
    airflow.task_is(LATE, behind, "data_executors", "deferred", WINDOW_SECONDS)
    states = airflow.states(waiting)
    assert states == dict.fromkeys(STAGES) | {
        "timer": "success",
        "sources.clicks": "success",
        "sources.optional": "success",
        held: "deferred",
    }
    for said in (
        airflow.project.forebay("why", LATE.name, LATE.key(2)).stdout,
        airflow.log(behind, "data_executors"),
    ):
        assert f"waits for window {LATE.key(1)}" in said

    with timed("a late source's window, from its marker on"):
        airflow.until(
            "40 s have passed", lambda: now() - started["asked"] > timedelta(seconds=40), 60
        )
        mark(airflow.project.root, MARKED, LATE.window(1))
        runs = airflow.ended(LATE, dict.fromkeys(range(3), "success"), WINDOW_SECONDS)
    assert all(airflow.states(run) == done(LATE) for run in runs.values())
    assert_in_order(airflow.project, LATE, range(3))
    assert_exact(airflow.project, LATE, range(3), without=["optional"])
    skipped = plan(airflow.project, LATE, 2)["sources"]["optional"]
    assert skipped["reason"].startswith("skipped: ")
    assert "_SUCCESS" in skipped["reason"]


def test_a_source_that_stays_away_is_red(airflow: Airflow) -> None:
    run = airflow.ended(NEVER, {0: "failed"}, WINDOW_SECONDS + LATE_SECONDS)[0]
    assert airflow.states(run) == failed_at(NEVER, "sources.never")
    assert_last_lines(airflow, run, "sources.never", "'never' is not complete", "_SUCCESS")


def test_bad_data_is_red_where_it_is_met(airflow: Airflow) -> None:
    runs = airflow.ended(TORN, {0: "success", 1: "failed", 2: "failed"}, WINDOW_SECONDS)
    assert airflow.states(runs[1]) == failed_at(TORN, TRAINING)
    assert_last_lines(airflow, runs[1], TRAINING, "part-1.parquet")
    assert airflow.states(runs[2]) == failed_at(TORN, "sources.torn")
    assert_last_lines(airflow, runs[2], "sources.torn", "part-1.parquet")
    assert served(airflow.project, TORN) == (TORN.key(0), 1)
    assert_exact(airflow.project, TORN, [0])


def test_a_loss_that_is_not_a_number_is_red(airflow: Airflow) -> None:
    """With real towers; prices of the second window are infinite."""
    runs = airflow.ended(NAN, {0: "success", 1: "failed"}, WINDOW_SECONDS)
    assert airflow.states(runs[0]) == done(NAN)
    assert airflow.states(runs[1]) == failed_at(NAN, TRAINING)
    words = ("the loss of paradigm batch is not finite", NAN.key(1), "logs: ")
    assert_last_lines(airflow, runs[1], TRAINING, *words)
    assert served(airflow.project, NAN) == (NAN.key(0), 1)
    assert generations(airflow.project, NAN, 1) == []
    assert_exact(airflow.project, NAN, [0])


def test_a_pool_of_one_slot(airflow: Airflow, timed: Timed) -> None:
    """Two windows at a time and one slot; without grace whoever waits is deferred."""
    with timed("2 windows in a pool of one slot, without grace"):
        airflow.backfill(NARROW, 1, 2)
        waits = airflow.run_of(NARROW, 2)
        airflow.task_is(NARROW, waits, "data_executors", "deferred", WINDOW_SECONDS)
        runs = airflow.ended(NARROW, dict.fromkeys((1, 2), "success"), WINDOW_SECONDS)
    assert [airflow.states(run) for run in runs.values()] == [done(NARROW)] * 2
    pools = {task["pool"] for run in runs.values() for task in airflow.tasks(run).values()}
    assert pools == {ONE_SLOT}
    assert_exact(airflow.project, NARROW, range(3))
    assert_in_order(airflow.project, NARROW, range(3))


@pytest.fixture(scope="module")
def backfilled(airflow: Airflow) -> Reads:
    return backfill_by_rest(airflow)


class TestOneLine(LineStory):
    """Backfills by REST and from the command line, the same again, clears."""


# A running Airflow meets new YAML ------------------------------------------------------------


def test_yaml_dropped_into_a_running_airflow(airflow: Airflow, tell: Tell) -> None:
    """Three files at once, one of them with five mistakes: the other two run, nothing restarts."""
    before = {name: each["restarts"] for name, each in airflow.components().items()}
    dropped = time.monotonic()
    for pipeline in (DROPPED, BESIDE):
        pipeline.write(airflow.project)
    path = write_yaml(airflow.project, "broken", FIVE_MISTAKES)

    def there() -> bool:
        return {DROPPED.name, BESIDE.name} <= {dag["dag_id"] for dag in airflow.api.dags()}

    airflow.until("both DAGs are there", there, 60)
    tell(f"{time.monotonic() - dropped:7.1f} s  from a dropped YAML to its DAG")
    errors = airflow.until("the import error is there", airflow.api.import_errors, 60)
    tell(f"{time.monotonic() - dropped:7.1f} s  from a dropped YAML to its import error")
    assert len(errors) == 1, errors
    checked = airflow.project.forebay("check", check=False)
    lines = [line for line in checked.stdout.splitlines() if "broken.yaml:" in line]
    assert len(lines) == len(MISTAKES), checked.stdout
    assert [word for word in MISTAKES if word not in "\n".join(lines)] == []
    assert [line for line in lines if line not in errors[0]["stack_trace"]] == []

    for pipeline in (DROPPED, BESIDE):
        run = airflow.ended(pipeline, {0: "success"}, WINDOW_SECONDS)[0]
        if pipeline is DROPPED:
            tell(f"{time.monotonic() - dropped:7.1f} s  from a dropped YAML to its first model")
        assert airflow.states(run) == done(pipeline)
        assert_exact(airflow.project, pipeline, [0])
    path.unlink()
    airflow.until("the import error is gone", lambda: not airflow.api.import_errors(), 90)
    assert {name: each["restarts"] for name, each in airflow.components().items()} == before


# Many windows, one scan -----------------------------------------------------------------------


def test_48_hourly_windows_are_planned_by_one_scan(airflow: Airflow, timed: Timed) -> None:
    """The form's defaults: ten runs at a time, yet the first look serves all 48."""
    with timed("48 hourly windows: one scan, the first 10 planned from it"):
        airflow.backfill(HOURS, 0, HOURS_AHEAD - 1)
        runs = [airflow.run_of(HOURS, number) for number in range(10)]
        for run in runs:
            airflow.task_is(HOURS, run, "sink", "success", WINDOW_SECONDS)
    airflow.api.pause(HOURS.name, paused=True)
    for name in HOURS.sources:
        results = [airflow.result(run, f"sources.{name}") for run in runs]
        scans = [found for found in results if found["storage_calls"]]
        assert len(scans) == 1, f"{name} was scanned {len(scans)} times"
        assert scans[0]["windows_scanned"] == HOURS_AHEAD
    for number in range(10):
        expected = HOURS.expected(airflow.project.root, number)
        planned = plan(airflow.project, HOURS, number)["sources"]
        assert {name: planned[name]["rows"] for name in expected} == {
            name: sums["rows"] for name, sums in expected.items()
        }


class TestKills(KillStory):
    """SIGKILL of an Airflow worker, the scheduler, the triggerer, a driver and a trainer."""


# Afterwards -----------------------------------------------------------------------------------


def test_what_tasks_leave_in_airflow(airflow: Airflow) -> None:
    """XComs are counts and references; the task's page links to log and report."""
    run = airflow.run_of(LATE, 0)
    left = {task: airflow.xcoms(run, task) for task in all_tasks(LATE)}
    assert all("return_value" in left[task] for task in all_tasks(LATE) if task != "joiner"), left
    sizes = {task: len(json.dumps(values)) for task, values in left.items()}
    assert max(sizes.values()) < XCOM_BYTES_MAX, sizes
    links = airflow.api.links(run.dag_id, run.run_id, TRAINING)
    assert len(links) >= 2, links
    assert all(links.values()), links


def test_a_run_without_a_logical_date_is_refused(airflow: Airflow) -> None:
    found = airflow.api.trigger(ADS.name, None)
    run_id = found["dag_run_id"]
    airflow.until(
        "it is over",
        lambda: airflow.api.dag_run(ADS.name, run_id)["state"] == "failed",
        60,
        ADS,
    )
    assert "no logical date" in "\n".join(airflow.api.log(ADS.name, run_id, "timer", 1))


def test_down_leaves_nothing(airflow: Airflow, tell: Tell) -> None:
    before = processes_of(airflow)
    assert len(before) > 5
    tell(f"{airflow.down():7.1f} s  `forebay down`")
    assert gone(before, 1) == []
    assert processes_of(airflow) == []
    assert modes_of_folders(airflow.project.root) == airflow.facts["modes"]
