"""The first task of a run, which waits for its window, and the one that records its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import DownstreamTasksSkipped, TaskDeferred
from support.links import link
from support.model_lines import record
from support.task_logs import lines_of
from support.toy_stage import ToyStage

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.errors import ConfigError, UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages import timer as module
from forebay.operators.stages.sink import SinkOperator
from forebay.operators.stages.timer import TimerOperator
from forebay.operators.triggers.window_over import WindowOverTrigger

WINDOW = WindowGrid(WindowSize.DAY).parse("2026-03-05")
ASKED = StageRequest("ads", "mine", "timer", WINDOW, 1, 0, reprocess=False)
OPEN = {"state": "open", "window": WINDOW.key, "reason": "not trained"}
TRAINED = {"state": "trained", "window": WINDOW.key, "generation": 3, "reason": "trained"}
TRAINED |= {"next": "clear this run"}
RECORDED = {"window": WINDOW.key, "generation": 1, "tasks": 2, "recorded": True}
GRACE_SECONDS = 2.0


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyStage:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    toy = ToyStage.make(tmp_path / "toy")
    toy.answer(timer=[{"prints": OPEN}], sink=[{"prints": RECORDED}])
    return toy


def timer(toy: ToyStage) -> TimerOperator:
    where = {"pipeline": "ads", "config": "/config", "python": toy.python}
    return TimerOperator(task_id="timer", grace_seconds=GRACE_SECONDS, **where)


At = Callable[[datetime], None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """The clock stands."""
    return lambda instant: monkeypatch.setattr(module, "utc_now", lambda: instant)


def test_a_window_that_is_over_is_looked_at(
    toy: ToyStage, monkeypatch: pytest.MonkeyPatch, at: At
) -> None:
    said = lines_of(monkeypatch)
    for days in (0, 1):
        at(WINDOW.end + timedelta(days=days))
        assert timer(toy).work(ASKED, {})["state"] == "open"
    assert [call[:2] for call in toy.calls("timer")] == [["ads", WINDOW.key]] * 2
    assert not [line for line in said if "not over" in line]


def test_a_window_that_is_nearly_over_is_waited_for(
    toy: ToyStage, monkeypatch: pytest.MonkeyPatch, at: At
) -> None:
    paused: list[float] = []
    at(WINDOW.end - timedelta(seconds=GRACE_SECONDS))
    task = timer(toy)
    monkeypatch.setattr(task, "pause", paused.append)
    said = lines_of(monkeypatch)
    assert task.work(ASKED, {})["state"] == "open"
    assert said[0].startswith("window 2026-03-05: not over, it ends at 2026-03-06")
    assert paused == [GRACE_SECONDS]


def test_a_longer_wait_is_deferred_to_the_window_s_end(toy: ToyStage, at: At) -> None:
    at(WINDOW.start)  # its stage is asked first, which refuses one of no dataset
    with pytest.raises(TaskDeferred) as deferred:
        timer(toy).work(ASKED, {})
    trigger = deferred.value.trigger
    assert isinstance(trigger, WindowOverTrigger)
    assert (trigger.until, deferred.value.method_name) == (WINDOW.end.timestamp(), "window_over")
    assert timedelta(days=1) < (deferred.value.timeout or timedelta(0)) < timedelta(days=2)


def test_a_window_outside_the_dataset_is_not_waited_for(toy: ToyStage, at: At) -> None:
    toy.answer(timer=[{"code": 1, "says": ["error: ads.yaml:3:1: after the dataset's end"]}])
    for instant in (WINDOW.start, WINDOW.start - timedelta(days=1)):
        at(instant)
        with pytest.raises(ConfigError, match="after the dataset's end"):
            timer(toy).work(ASKED, {})


def test_the_run_that_unpausing_made_is_skipped_where_others_come_before_it(
    toy: ToyStage, monkeypatch: pytest.MonkeyPatch, at: At, tmp_path: Path
) -> None:
    runs: list[SimpleNamespace] = []
    monkeypatch.setattr(module, "latest_before", lambda dag_id, window: next(iter(runs), None))
    monkeypatch.setattr(module, "runs_of", lambda _, w, __: [r for r in runs if r.window == w.key])
    at(WINDOW.end)
    pushed: dict[str, Any] = {}
    context: Any = {"ti": SimpleNamespace(xcom_push=lambda key, value: pushed.update(value))}

    def skipped(asked: StageRequest) -> str:
        pushed.clear()
        try:
            timer(toy).work(asked, context)
        except DownstreamTasksSkipped:
            return str(pushed["reason"])
        return ""

    scheduled = replace(ASKED, scheduled=True)
    assert skipped(scheduled) == "", "the line begins here"
    first = SimpleNamespace(
        run_id="first", run_type="backfill", state="queued", window="2026-03-01"
    )
    runs.append(first)
    assert skipped(scheduled).startswith("run first has not ended")
    first.window = "2026-03-04"
    assert skipped(scheduled) == "", "its turn comes after that run"
    first.window, first.state = "2026-03-01", "success"
    assert skipped(scheduled) == ""
    record(ModelChain(Home(tmp_path / "home"), "ads"), link("2026-03-01", {"clicks": 12}))
    assert skipped(scheduled).startswith("windows 2026-03-02 to 2026-03-04 are not trained yet")
    assert skipped(ASKED) == "", "somebody asked for it"
    assert skipped(replace(scheduled, clear_count=1)) == "", "the same"
    first.run_type = "scheduled"
    assert skipped(scheduled) == "", "a gap in a schedule is red, not skipped"


def test_a_window_that_has_not_begun_is_refused(toy: ToyStage, at: At) -> None:
    at(WINDOW.start - timedelta(microseconds=1))
    with pytest.raises(UsageError, match="has not started: it starts at 2026-03-05"):
        timer(toy).work(ASKED, {})


@pytest.mark.parametrize("clears", [0, 1])
def test_a_clear_asks_for_the_window_again(toy: ToyStage, at: At, clears: int) -> None:
    at(WINDOW.end)
    asked = replace(ASKED, clear_count=clears)
    timer(toy).work(asked, {})
    assert ("--again" in toy.calls("timer")[0]) == clears
    sink = SinkOperator(task_id="sink", pipeline="ads", config="/config", python=toy.python)
    sink.work(asked, {})
    (arguments,) = toy.calls("sink")
    again = ["--again"] * clears
    assert arguments[2 : 4 + clears] == ["--asked-by", "ads/mine#1", *again]
