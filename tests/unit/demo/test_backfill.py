"""The demo's backfill against an Airflow that answers from a script."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from examples.demo.airflow import backfill as module
from examples.demo.airflow.backfill import Backfill
from examples.demo.airflow.live import Shown
from examples.demo.trained_rows import TrainedRows
from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.embedded.airflow.http import ConflictError, NotFoundError
from forebay.errors import ConfigError, InfrastructureError
from forebay.home.paths import Home

GRID = WindowGrid(WindowSize.DAY)
WINDOWS = GRID.between("2013-06-01", "2013-06-02")


class Scripted:
    """Answers as Airflow's REST API does. `states`: of each window's run, one list a look."""

    def __init__(self, *states: dict[str, str], task: str = "success") -> None:
        self.states = list(states)
        self.task = task
        self.paused = False
        self.refuses = False
        self.errors: list[dict[str, str]] = []
        self.missing = 0
        self.calls: list[str] = []

    def dag(self, dag_id: str) -> dict[str, Any]:
        self.missing -= 1
        if self.missing >= 0:
            raise NotFoundError("no such DAG", 404)
        return {"is_paused": self.paused}

    def import_errors(self) -> list[dict[str, str]]:
        return self.errors

    def pause(self, dag_id: str, paused: bool) -> None:
        self.calls.append(f"pause {paused}")

    def clear(self, dag_id: str, run_id: str) -> None:
        self.calls.append(f"clear {run_id}")

    def create_backfill(self, dag_id: str, first: datetime, last: datetime) -> dict[str, Any]:
        if self.refuses:
            raise ConflictError("there is one already", 409)
        self.calls.append(f"backfill {first:%m-%d} {last:%m-%d}")
        return {"id": 7}

    def dag_runs(self, dag_id: str) -> list[dict[str, Any]]:
        now = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        other = {"2013-05-01": "failed"}  # of nobody's business
        return [
            {"logical_date": f"{key}T00:00:00Z", "dag_run_id": f"run {key}", "state": state}
            for key, state in {**other, **now}.items()
        ]

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        self.calls.append(f"tasks {run_id}")
        return [
            {"task_id": "timer", "state": "success", "try_number": 1},
            {"task_id": "training_executors", "state": self.task, "try_number": 3},
        ]

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int) -> list[str]:
        assert (task_id, attempt) == ("training_executors", 3)
        return [f"line {number}" for number in range(100)] + ["the loss is not finite", "::end::"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.0)


def backfill_of(api: Scripted, home: Path, said: Callable[[str], None] = print) -> Backfill:
    rows = TrainedRows(Home(home), "flights", "main", "mixture")
    return Backfill(api, "flights", GRID, WINDOWS, rows, said, lambda: None)  # type: ignore[arg-type]


def follow(backfill: Backfill, seconds: float = 10.0) -> str:
    text = io.StringIO()
    with Shown("mixture", Console(file=text, force_terminal=False, width=200)) as shown:
        backfill.follow(shown, time.monotonic() + seconds)
    return text.getvalue()


@pytest.mark.parametrize("goes_on", [False, True])
def test_missing_runs_are_asked_for_and_failed_ones_cleared(tmp_path: Path, goes_on: bool) -> None:
    said: list[str] = []
    api = Scripted({"2013-06-01": "running" if goes_on else "failed"})
    api.refuses = goes_on
    backfill_of(api, tmp_path, said.append).create()
    if goes_on:
        assert (api.calls, said) == ([], ["airflow  an earlier backfill continues"])
        return
    assert api.calls == ["clear run 2013-06-01", "backfill 06-01 06-02"]
    wanted = "flights 2013-06-01 to 2013-06-02, missing runs, 10 active runs; runs missing: 1"
    assert said[-1] == f"airflow  backfill 7: {wanted}"


def test_a_dag_is_waited_for_until_it_is_there_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Scripted({})
    api.missing, api.paused = 2, True
    backfill_of(api, tmp_path).await_dag()
    assert api.calls == ["pause False"]
    monkeypatch.setattr(module, "DAG_SECONDS", 0.0)
    api.missing = 1000
    with pytest.raises(InfrastructureError, match="no DAG 'flights'"):
        backfill_of(api, tmp_path).await_dag()
    monkeypatch.undo()
    api.errors = [
        {"filename": "config/other.py", "stack_trace": "not ours"},
        {"filename": "config/flights.py", "stack_trace": "flights.yaml:3:1: unknown key"},
    ]
    with pytest.raises(ConfigError, match=r"flights\.yaml:3:1"):
        backfill_of(api, tmp_path).await_dag()


def test_runs_are_followed_to_their_end_and_asked_for_no_more_than_needed(tmp_path: Path) -> None:
    api = Scripted(
        {"2013-06-01": "running"},
        {"2013-06-01": "success", "2013-06-02": "queued"},
        {"2013-06-01": "success", "2013-06-02": "success"},
    )
    shown = follow(backfill_of(api, tmp_path))
    done = [f"2013-06-0{day}  done  2/2 tasks" for day in (1, 2)]
    assert [line for line in shown.splitlines() if "done" in line] == done
    assert api.calls == ["tasks run 2013-06-01", "tasks run 2013-06-02"]


def test_a_red_task_ends_the_demo_with_its_log(tmp_path: Path) -> None:
    api = Scripted({"2013-06-01": "running"}, task="failed")
    with pytest.raises(InfrastructureError) as raised:
        follow(backfill_of(api, tmp_path))
    lines = str(raised.value).splitlines()
    assert lines[0] == "window 2013-06-01: task training_executors failed in try 3; its log ends:"
    assert (len(lines), lines[-1]) == (1 + module.LOG_LINES, "  the loss is not finite")


@pytest.mark.parametrize(
    ("run", "task", "says"),
    [
        ("failed", "success", "but no task did"),  # somebody marked it so
        ("running", "running", "2 of 2 windows were not done in time"),
    ],
)
def test_what_else_ends_it(tmp_path: Path, run: str, task: str, says: str) -> None:
    with pytest.raises(InfrastructureError, match=says):
        follow(backfill_of(Scripted({"2013-06-01": run}, task=task), tmp_path), seconds=0.0)
