"""Questions to Airflow about other runs: which are asked, and what the answers mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk.api.datamodels._generated import DagRun
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import (
    GetPreviousDagRun,
    GetTaskStates,
    PreviousDagRunResult,
    TaskStatesResult,
)

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.operators.runs.airflow_runs import (
    active_runs_near,
    any_runs_until,
    latest_active_before,
    runs_of,
    task_states,
)

GRID = WindowGrid(WindowSize.HOUR)
TEN = GRID.parse("2026-03-01T10")


def run(hour: int, minute: int = 0, state: str = "running", clear_number: int = 0) -> DagRun:
    at = datetime(2026, 3, 1, hour, minute, tzinfo=UTC)
    start = at.replace(minute=0)
    unset = dict.fromkeys(("start_date", "end_date", "partition_key"))
    interval = {"data_interval_start": start, "data_interval_end": start + timedelta(hours=1)}
    told: Any = {"dag_id": "ads", "run_id": f"run-{hour}:{minute:02}", "run_type": "manual"}
    told |= {"state": state, "clear_number": clear_number, "consumed_asset_events": []}
    return DagRun.model_validate(told | unset | interval | {"logical_date": at, "run_after": at})


class Airflow:
    def __init__(self) -> None:
        self.runs: list[DagRun] = []
        self.states: dict[str, dict[str, str | None]] = {}
        self.asked: list[Any] = []

    def send(self, question: Any) -> Any:
        self.asked.append(question)
        if isinstance(question, GetTaskStates):
            known = {name: self.states[name] for name in question.run_ids if name in self.states}
            return TaskStatesResult(task_states=known)
        assert isinstance(question, GetPreviousDagRun)
        earlier = [
            each
            for each in self.runs
            if each.logical_date < question.logical_date
            and question.state in {None, each.state.value}
        ]
        newest = max(earlier, key=lambda r: r.logical_date, default=None)
        return PreviousDagRunResult(dag_run=newest)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    fake = Airflow()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", fake, raising=False)
    return fake


def test_all_runs_of_a_window_and_of_no_other(airflow: Airflow) -> None:
    airflow.runs = [run(9, 59), run(10), run(10, 37, "failed", 2), run(11)]
    found = runs_of("ads", TEN, GRID)
    assert [each.run_id for each in found] == ["run-10:37", "run-10:00"]
    assert (found[0].clear_number, found[0].state, found[0].active) == (2, "failed", False)
    assert {each.window for each in found} == {TEN}


def test_the_latest_active_run_before_a_window(airflow: Airflow) -> None:
    airflow.runs = [run(6, state="queued"), run(7), run(9, state="failed"), run(10), run(11)]
    found = latest_active_before("ads", TEN, GRID)
    assert found is not None
    assert (found.run_id, found.window.key) == ("run-7:00", "2026-03-01T07")
    airflow.runs = [run(9, state="success"), run(10)]
    assert latest_active_before("ads", TEN, GRID) is None


def test_whether_any_run_goes_on_until_a_window(airflow: Airflow) -> None:
    airflow.runs = [run(8, state="success"), run(9, state="queued"), run(11)]
    assert not any_runs_until("ads", TEN)
    airflow.runs = [run(10, 37)]
    assert any_runs_until("ads", TEN)
    airflow.runs = [run(3), run(9, state="queued")]
    assert any_runs_until("ads", TEN)


def test_active_runs_on_both_sides(airflow: Airflow) -> None:
    others = (run(8, state="queued"), run(9, state="success"))
    airflow.runs = [run(7), *others, run(10), run(12), run(13)]
    found = active_runs_near("ads", TEN, GRID, 2)
    assert [each.window.key[-2:] for each in found] == ["12", "10", "08"]
    assert [each.active for each in found] == [True, True, True]


def test_states_are_asked_in_pieces(airflow: Airflow) -> None:
    airflow.states = {f"run-{n}": {"sink": "success", "other": "failed"} for n in range(119)}
    found = task_states("ads", [f"run-{n}" for n in range(120)], "sink")
    assert found == dict.fromkeys([f"run-{n}" for n in range(119)], "success")
    assert [len(each.run_ids) for each in airflow.asked] == [50, 50, 20]
    assert all(each.task_ids == ["sink"] for each in airflow.asked)


def test_nothing_is_asked_about_no_runs(airflow: Airflow) -> None:
    """Airflow would answer a question without run ids about all of them."""
    assert (task_states("ads", [], "sink"), airflow.asked) == ({}, [])
