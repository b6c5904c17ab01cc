"""The outcome of the runs of the window before, in one word, and when a change is noticed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forebay.config.specs.windows import Window, WindowGrid, WindowSize
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.stages.turn import EarlierRun, PreviousRun, decide
from forebay.home.paths import Home
from forebay.operators.runs.airflow_runs import OtherRun
from forebay.operators.runs.run_listener import wake_waiting_windows
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.turn import previous_run
from forebay.operators.turn.previous_run import PreviousWindow, TurnObserver, combined_state
from forebay.operators.turn.snapshot import TurnSnapshot
from forebay.operators.turn.wait import CHANGED, TurnWait

GRID = WindowGrid(WindowSize.DAY)
WINDOW = GRID.parse("2026-03-01")
FILES = TurnSnapshot(held=False, is_near=False, links=[], further=[], failed_at=0.0)


def state_of(*runs: tuple[str, str | None]) -> PreviousRun:
    """Of runs as (state of the run, state of its training task)."""
    seen = [OtherRun(f"run{n}", state, WINDOW, 0) for n, (state, _) in enumerate(runs)]
    return combined_state(seen, {f"run{n}": training for n, (_, training) in enumerate(runs)})


@pytest.mark.parametrize(
    ("run", "training", "word"),
    [
        ("queued", None, PreviousRun.ACTIVE),
        ("running", "up_for_retry", PreviousRun.ACTIVE),
        ("running", "success", PreviousRun.DONE),  # it evaluates and publishes
        ("running", "failed", PreviousRun.FAILED),
        ("running", "upstream_failed", PreviousRun.FAILED),
        ("success", "success", PreviousRun.DONE),
        ("success", "skipped", PreviousRun.DONE),  # it was trained before
        ("success", None, PreviousRun.DONE),  # marked by hand
        ("failed", "success", PreviousRun.DONE),  # only its evaluation failed
        ("failed", "upstream_failed", PreviousRun.FAILED),
        ("failed", "skipped", PreviousRun.FAILED),  # a person failed it before it trained
        ("failed", None, PreviousRun.FAILED),
        ("failed", "removed", PreviousRun.FAILED),
    ],
)
def test_one_run(run: str, training: str | None, word: PreviousRun) -> None:
    assert state_of((run, training)) is word


def test_several_runs_of_one_window() -> None:
    """By hand and by a backfill: the one that goes on counts, then the one that trained."""
    assert state_of() is PreviousRun.NONE
    assert state_of(("success", "success"), ("running", None)) is PreviousRun.ACTIVE
    assert state_of(("failed", "failed"), ("success", "success")) is PreviousRun.DONE


def test_a_situation_has_all_that_a_task_can_see() -> None:
    run = OtherRun("run", "queued", WINDOW, 0)
    earlier = EarlierRun("2026-02-28", PreviousRun.DONE, trained=True)
    seen = PreviousWindow(
        "2026-03-01", "2026-02-28", (run,), {"run": None}, FILES, blocked=True, earlier=earlier
    )
    wait = TurnWait(deadline=0.0, blocked_looks=2)
    situation = seen.situation("2026-03-02", wait, "busy")
    assert situation[:6] == ("2026-03-02", "2026-03-01", PreviousRun.ACTIVE, earlier, 3, None)
    assert situation.answer == "busy"
    assert situation.seconds_left < 0
    assert replace(seen, blocked=False).situation("2026-03-02", wait, None).blocked_looks == 0


@pytest.fixture
def observer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TurnObserver:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    monkeypatch.setattr(previous_run, "task_states", lambda *_: {})
    request = StageRequest("ads", "run", "task", WINDOW, 0, 0, reprocess=False)
    return TurnObserver(request, GRID, Home(tmp_path), "ads", "main")


def looked_at(monkeypatch: pytest.MonkeyPatch, failed_until: str = "") -> list[str]:
    """Windows whose runs are asked for; up to one of them they have failed."""
    asked: list[str] = []

    def runs_of(dag_id: str, window: Window, grid: Any) -> list[OtherRun]:
        asked.append(window.key)
        state = "running" if window.key > failed_until else "failed"
        return [OtherRun(window.key, state, window, 0)]

    monkeypatch.setattr(previous_run, "runs_of", runs_of)
    return asked


def test_a_look_is_the_same_until_a_change(
    monkeypatch: pytest.MonkeyPatch, observer: TurnObserver
) -> None:
    """Windows further back are questions to Airflow: after a failure, and once for each change."""
    asked, first = looked_at(monkeypatch, "2026-02-26"), observer.look()
    assert observer.look() is first
    assert (first.key, first.earlier) == ("2026-02-28", None)
    assert asked == ["2026-02-28"], "Airflow is asked again after a while, or when our rows change"
    observer._ask_again = 0.0
    assert observer.look() is first
    assert asked == ["2026-02-28"] * 2
    wake_waiting_windows("ads")
    second = observer.look()
    assert second is not first
    assert second.earlier == EarlierRun("2026-02-26", PreviousRun.FAILED, trained=False)
    assert observer.look() is second
    assert asked[2:] == ["2026-02-28", "2026-02-27", "2026-02-26"]


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_line_begins_with_no_window_that_comes_after_an_active_run(
    monkeypatch: pytest.MonkeyPatch, observer: TurnObserver, *, has_begun: bool
) -> None:
    """The run of the window before was deleted: found by kills and clears of a backfill."""
    earlier = OtherRun("earlier", "running", GRID.parse("2026-02-26"), 0)

    def runs_of(dag_id: str, window: Window, grid: Any) -> list[OtherRun]:
        return [earlier] if window == earlier.window else []

    def latest(dag_id: str, window: Window, grid: Any) -> OtherRun:
        assert window.key == "2026-02-28"
        return earlier

    monkeypatch.setattr(previous_run, "runs_of", runs_of)
    monkeypatch.setattr(previous_run, "latest_active_before", latest)
    # Whatever has been trained before its first window: that is removed where it begins anew.
    monkeypatch.setattr(ModelChain, "is_begun", lambda _self: has_begun)
    seen = observer.look()
    if has_begun:
        assert (seen.key, seen.state) == ("2026-02-28", PreviousRun.NONE)
        return
    assert (seen.key, seen.further, seen.state) == ("2026-02-26", "2026-02-25", PreviousRun.ACTIVE)
    turn = decide(seen.situation(WINDOW.key, TurnWait(deadline=math.inf), None))
    assert turn.action == "wait"
    assert "waits for window 2026-02-26, whose run has not ended" in turn.reason


def test_it_looks_back_at_most_50_windows(monkeypatch: Any, observer: TurnObserver) -> None:
    asked = looked_at(monkeypatch)
    wake_waiting_windows("ads")
    assert observer.look().earlier is None
    assert len(asked) == 51, "the one before, and 50 before that"


def test_looks_become_rare_and_soon_again_after_a_change() -> None:
    wait = TurnWait(deadline=1e9)
    sleeps = []
    for _ in range(5):
        sleeps.append(wait.next_look)
        wait = wait.longer(blocked=False)
    assert sleeps == [60, 120, 240, 300, 300]
    assert wait.woken({"state": "look"}) is wait
    assert wait.woken({"state": CHANGED}).next_look == 15
    assert wait.woken({"state": CHANGED}).deadline == 1e9


def test_looks_that_found_no_way_out_count_on_end() -> None:
    wait = TurnWait(deadline=1e9)
    counts = []
    for blocked in (True, True, False, True):
        wait = wait.longer(blocked=blocked)
        counts.append(wait.blocked_looks)
    assert (counts, wait.woken({"state": CHANGED}).blocked_looks) == ([1, 2, 0, 1], 1)
