"""Pipelines in a real Airflow: API server, scheduler, DAG processor, triggerer, PostgreSQL.

One Airflow serves all tests of this file, in this order. What needs no watching is started before
the first test, so that windows of several pipelines train side by side; each test then judges its
own. States are Airflow's own, read by REST; rows are compared with counts that share nothing with
Forebay. Backfills of other kinds, clears, mended data and kills are in tests/chaos; that 48 windows
cost one scan is shown without Airflow, in test_stage_planning.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from support.airflow_cluster import ENDED, Airflow, now
from support.airflow_data import MARKED, mark, today
from support.airflow_endings import (
    STAGES,
    all_tasks,
    assert_ending,
    assert_last_lines,
    done,
    failed_at,
    nothing_to_do,
)
from support.airflow_jobs import WindowJob
from support.airflow_kill_story import HELD_AT_ROWS, TRAINING
from support.airflow_pipelines import (
    CATCHUP,
    DROPPED,
    FIVE_MISTAKES,
    LATE,
    LATE_SECONDS,
    MARKS,
    MISTAKES,
    NARROW,
    NEVER,
    OLD,
    ONE_SLOT,
    RECENT_DAYS,
    TORN,
    WINDOW_SECONDS,
    write_yaml,
)
from support.airflow_plugin import Tell, Timed
from support.airflow_processes import gone, modes_of_folders, processes_of, stages_of
from support.airflow_truth import assert_exact, assert_in_order, link, plan, served
from support.planted import CERTIFICATES, CONNECTION, PLANTED, STORAGE_KEY, planted_in
from support.projects import DAY

# Each wait has a deadline of its own.
pytestmark = pytest.mark.timeout(900)
XCOM_BYTES_MAX = 4_000
# What a person means who asks for a window in its middle, and then for the same one again.
ASKED_AT = {
    "hourly": (NARROW, NARROW.window(0) + timedelta(minutes=37)),
    "daily": (MARKS, MARKS.window(0) + timedelta(hours=10, minutes=37)),
}


@pytest.fixture(scope="module", autouse=True)
def started(airflow: Airflow) -> dict[str, Any]:
    """Everything that needs no watching: when, and the manual run."""
    airflow.http.post("/pools", {"name": ONE_SLOT, "slots": 1})
    found: dict[str, Any] = {"asked": now(), "manual": airflow.trigger(*ASKED_AT["hourly"])}
    for pipeline, first, last in ((NARROW, 1, 1), (LATE, 0, 2), (NEVER, 0, 0), (TORN, 0, 3)):
        airflow.backfill(pipeline, first, last)
    return found


def test_it_starts(airflow: Airflow, tell: Tell) -> None:
    tell(f"{airflow.started_seconds:7.1f} s  `forebay up`, from nothing to all components healthy")
    status = json.loads(airflow.project.forebay("status", "--output", "json").stdout)
    assert status["healthy"]
    assert {each["component"] for each in status["components"]} == set(airflow.components())
    assert airflow.api.import_errors() == []
    dags = {dag["dag_id"]: dag for dag in airflow.api.dags()}
    assert {"ads", "narrow", "catchup", "kills"} <= set(dags)
    assert set(airflow.facts["dags"].values()) == {True}, "a new DAG is not paused"
    assert airflow.facts["runs"] == [], "something trained unasked"


def test_each_process_inherits_what_it_needs(airflow: Airflow) -> None:
    components = airflow.components()
    found = planted_in(psutil.Process(each["pid"]) for each in components.values())
    runs_tasks = set(PLANTED)
    assert dict(zip(components, found, strict=True)) == {
        "postgres": set(),
        "api-server": {CERTIFICATES, CONNECTION},
        "dag-processor": runs_tasks,
        "scheduler": runs_tasks,
        "triggerer": runs_tasks,
    }

    def stage() -> list[set[str]]:
        with suppress(psutil.NoSuchProcess):
            return planted_in(stages_of(airflow)[:1])
        return []

    stages = airflow.until("a stage runs", stage, WINDOW_SECONDS)
    assert stages == [{CERTIFICATES, STORAGE_KEY}]


def listens_at(process: psutil.Process) -> list[tuple[str, int]]:
    return [tuple(one.laddr) for one in process.net_connections("tcp4") if one.status == "LISTEN"]


def test_the_port_stays_the_keepers_whatever_becomes_of_the_api_server(airflow: Airflow) -> None:
    server = psutil.Process(airflow.components()["api-server"]["pid"])
    keeper = server.parent()
    assert keeper is not None
    assert len(listens_at(server)) == 1
    assert listens_at(keeper) == listens_at(server)


def test_whoever_waits_gives_its_slot_back(airflow: Airflow) -> None:
    """Two windows at a time in a pool of one slot, without grace."""
    waits = airflow.run_of(NARROW, 1)
    airflow.until(
        "it waits without a slot",
        lambda: airflow.states(waits)["data_executors"] in {"deferred", "up_for_reschedule"},
        WINDOW_SECONDS,
        NARROW,
    )


def test_a_manual_run_means_the_window_that_holds_it(
    airflow: Airflow, started: Mapping[str, Any], timed: Timed
) -> None:
    pipeline, asked = ASKED_AT["hourly"]
    fresh = airflow.ended(pipeline, {0: "success"}, WINDOW_SECONDS)[0]
    assert (fresh.run_id, fresh.logical_date) == (started["manual"], asked)
    assert_ending(airflow, "manual run at 10:37, hourly, fresh", pipeline, fresh, 0)
    assert_exact(airflow.project, pipeline, [0])
    again(airflow, "hourly", timed)


def again(airflow: Airflow, name: str, timed: Timed) -> None:
    """Ask for a window that is done: green in seconds, and the log says how to do it again."""
    pipeline, asked = ASKED_AT[name]
    with timed(f"manual run of a window done already, {name}"):
        run_id = airflow.trigger(pipeline, asked + timedelta(minutes=1))
        airflow.until(
            "it is over", lambda: airflow.run(pipeline, run_id).state == "success", 60, pipeline
        )
    run = airflow.run(pipeline, run_id)
    assert_ending(airflow, f"manual run at 10:38, {name}, done already", pipeline, run, 0)
    said = airflow.log(run, "timer")
    words = ("already trained", "clear this run", '{"reprocess": true}')
    assert [word for word in words if word not in said] == [], said


def test_a_late_source_holds_its_window_and_no_other(
    airflow: Airflow, started: Mapping[str, Any]
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
    assert why["reason"] in airflow.log(waiting, held)
    airflow.task_is(LATE, behind, "data_executors", "up_for_reschedule", WINDOW_SECONDS)
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
    airflow.until("40 s have passed", lambda: now() - started["asked"] > timedelta(seconds=40), 60)
    mark(airflow.project.root, MARKED, LATE.window(1))
    airflow.task_is(LATE, waiting, "sink", "success", WINDOW_SECONDS)
    # The one place of their DAG is not another's that cannot use it.
    airflow.until(
        "its executors start",
        lambda: airflow.states(waiting)["data_executors"] in {"running", "success"},
        30,
        LATE,
    )


# What was started at the beginning has ended meanwhile ------------------------------------------


def test_a_pool_of_one_slot_is_no_deadlock(airflow: Airflow) -> None:
    run = airflow.ended(NARROW, {1: "success"}, WINDOW_SECONDS)[1]
    assert airflow.states(run) == done(NARROW)
    assert {task["pool"] for task in airflow.tasks(run).values()} == {ONE_SLOT}
    assert_exact(airflow.project, NARROW, range(2))
    assert_in_order(airflow.project, NARROW, range(2))


def test_catchup_after_the_scheduler_was_down(airflow: Airflow) -> None:
    """Before Airflow started, the first of the windows was trained by `forebay run`."""
    runs = airflow.ended(CATCHUP, dict.fromkeys(range(RECENT_DAYS), "success"), WINDOW_SECONDS)
    assert len(airflow.runs(CATCHUP)) == RECENT_DAYS, "it ran windows that are not over"
    assert {run.run_type for run in runs.values()} == {"scheduled"}
    assert_ending(airflow, "catchup, trained by hand before", CATCHUP, runs[0], 0)
    assert_ending(airflow, "catchup, missed while the scheduler was down", CATCHUP, runs[1], 1)
    assert_exact(airflow.project, CATCHUP, range(RECENT_DAYS))
    assert_in_order(airflow.project, CATCHUP, range(RECENT_DAYS))
    assert served(airflow.project, CATCHUP) == (CATCHUP.key(1), 1)


def test_the_late_window_ends_once_its_marker_is_there(airflow: Airflow) -> None:
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
    ends = {0: "success", **dict.fromkeys(range(1, 4), "failed")}
    runs = airflow.ended(TORN, ends, WINDOW_SECONDS)
    # The file may be met before data_executors has looked, or later: either task names it.
    states = airflow.states(runs[1])
    red = next(task for task in ("data_executors", TRAINING) if states[task] == "failed")
    assert states == failed_at(TORN, red)
    assert_last_lines(airflow, runs[1], red, "part-1.parquet")
    assert airflow.states(runs[2]) == failed_at(TORN, "sources.torn")
    assert_last_lines(airflow, runs[2], "sources.torn", "part-1.parquet")
    # Sound, but its model would lack what the others should have taught.
    assert airflow.states(runs[3]) == failed_at(TORN, "data_executors")
    words = ("comes before it, failed", "missing and errored runs")
    assert_last_lines(airflow, runs[3], "data_executors", *words)
    assert served(airflow.project, TORN) == (TORN.key(0), 1)
    assert_exact(airflow.project, TORN, [0])


# A person in the way -----------------------------------------------------------------------------


def test_mark_failed_pause_and_unpause(airflow: Airflow, timed: Timed) -> None:
    """A manual run, too, of a daily window."""
    job = WindowJob(airflow, MARKS, 0)
    run_id = airflow.trigger(*ASKED_AT["daily"])
    with timed("mark failed while it trains, until its processes have ended"):
        with job.held(HELD_AT_ROWS, WINDOW_SECONDS):
            airflow.task_is(MARKS, airflow.run(MARKS, run_id), TRAINING, "running", WINDOW_SECONDS)
            # Running is what Airflow says before the task's own code has begun to.
            airflow.until("training follows the job", lambda: job.epoch() > 1, 60, MARKS)
            processes = job.processes()
            assert len(processes) >= 4, processes
            assert [names for names in planted_in(processes) if CONNECTION in names] == []
            airflow.api.set_run_state(MARKS.name, run_id, "failed")
            # The task hears of it at its next heartbeat only.
            assert job.status()["cancelled_by"] == job.epoch()
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
    assert (run.run_id, run.logical_date) == (run_id, ASKED_AT["daily"][1])
    assert_ending(airflow, "unpaused", MARKS, run, 0)
    assert_exact(airflow.project, MARKS, [0])
    assert link(airflow.project, MARKS, 0)["resumed_from_step"] > 0, "it began from nothing"
    again(airflow, "daily", timed)


# A running Airflow meets new YAML ------------------------------------------------------------


def test_yaml_dropped_into_a_running_airflow(airflow: Airflow, tell: Tell) -> None:
    """Three files at once, one of them with five mistakes: the other two run, nothing restarts."""
    before = {name: each["restarts"] for name, each in airflow.components().items()}
    dropped = time.monotonic()
    for pipeline in (DROPPED, OLD):
        pipeline.write(airflow.project)
    path = write_yaml(airflow.project, "broken", FIVE_MISTAKES)
    for pipeline in (DROPPED, OLD):
        airflow.until("its DAG is there", partial(airflow.knows, pipeline), 60)
    tell(f"{time.monotonic() - dropped:7.1f} s  from a dropped YAML to its DAG")
    errors = airflow.until("the import error is there", airflow.api.import_errors, 60)
    tell(f"{time.monotonic() - dropped:7.1f} s  from a dropped YAML to its import error")
    assert len(errors) == 1, errors
    checked = airflow.project.forebay("check", check=False)
    lines = [line for line in checked.stdout.splitlines() if "broken.yaml:" in line]
    assert len(lines) == len(MISTAKES), checked.stdout
    assert [word for word in MISTAKES if word not in "\n".join(lines)] == []
    assert [line for line in lines if line not in errors[0]["stack_trace"]] == []

    assert airflow.runs(DROPPED) == airflow.runs(OLD) == [], "something trained unasked"
    airflow.form(OLD, 0, 0)
    airflow.project.forebay("airflow", "dags", "unpause", DROPPED.name)
    run = airflow.ended(DROPPED, {0: "success"}, WINDOW_SECONDS)[0]
    tell(f"{time.monotonic() - dropped:7.1f} s  from a dropped YAML to its first model")
    assert (run.run_type, airflow.states(run)) == ("scheduled", done(DROPPED))
    assert_exact(airflow.project, DROPPED, [0])
    path.unlink()
    airflow.until("the import error is gone", lambda: not airflow.api.import_errors(), 90)
    assert {name: each["restarts"] for name, each in airflow.components().items()} == before


def test_the_form_on_old_data_and_the_run_that_unpausing_makes(airflow: Airflow) -> None:
    """Yesterday, which is empty, neither begins the line nor keeps the past from it."""
    run = airflow.ended(OLD, {0: "success"}, WINDOW_SECONDS)[0]
    assert airflow.states(run) == done(OLD)
    assert_exact(airflow.project, OLD, [0])
    automatic = [run for run in airflow.runs(OLD) if run.run_type == "scheduled"]
    assert [run.window for run in automatic] == [today() - DAY]
    assert airflow.states(automatic[0]) == nothing_to_do(OLD)
    said = airflow.log(automatic[0], "timer")
    words = ("skipped. ", "create a backfill")
    assert [word for word in words if word not in said] == [], said


def test_a_window_outside_the_dataset_is_red(airflow: Airflow) -> None:
    """Airflow runs no task outside a DAG's dates, and calls that a success."""
    assert NEVER.end is not None
    outside = {
        NEVER.start - DAY: "2026-02-28 is before the dataset's start (2026-03-01T00:00Z)",
        NEVER.end: "2026-03-11 is after the dataset's end (2026-03-11T00:00Z)",
    }
    before = airflow.run(NEVER, airflow.trigger(NEVER, NEVER.start - DAY))
    airflow.backfill(NEVER, 10, 10)
    for run in (before, airflow.run_of(NEVER, 10)):
        ended = partial(lambda run_id: airflow.run(NEVER, run_id).state in ENDED, run.run_id)
        airflow.until("it is over", ended, 2 * 60, NEVER)
        assert airflow.run(NEVER, run.run_id).state == "failed"
        words = (f"config/pipelines/{NEVER.name}.yaml:", outside[run.window])
        assert_last_lines(airflow, run, "timer", *words)


# Afterwards -----------------------------------------------------------------------------------


def test_what_tasks_leave_in_airflow(airflow: Airflow) -> None:
    """XComs are counts and references; links lead to the job's log, its report, the run before."""
    run = airflow.run_of(LATE, 1)
    left = {task: airflow.xcoms(run, task) for task in all_tasks(LATE)}
    assert [task for task, values in left.items() if "return_value" not in values] == ["joiner"]
    sizes = {task: len(json.dumps(values)) for task, values in left.items()}
    assert max(sizes.values()) < XCOM_BYTES_MAX, sizes
    links = airflow.api.links(run.dag_id, run.run_id, "data_executors")
    assert links.keys() == {"Training log", "Window before"}
    assert quote(airflow.run_of(LATE, 0).run_id, safe="") in (links["Window before"] or "")
    links |= airflow.api.links(run.dag_id, run.run_id, TRAINING)
    assert all(str(links[name]).startswith("http://127.0.0.1:") for name in links if links[name])
    assert TRAINING in str(links["Training log"])
    assert "evaluate" in str(links["Metrics"])
    run = airflow.run_of(NARROW, 1)
    assert airflow.api.dag_run(NARROW.name, run.run_id)["note"] == f"window {NARROW.key(1)}"


def test_down_leaves_nothing(airflow: Airflow, tell: Tell) -> None:
    before = processes_of(airflow)
    assert len(before) > 5
    tell(f"{airflow.down():7.1f} s  `forebay down`")
    assert gone(before, 1) == []
    assert processes_of(airflow) == []
    assert modes_of_folders(airflow.project.root) == airflow.facts["modes"]
