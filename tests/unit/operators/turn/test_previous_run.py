"""What the runs of the window before come to, in one word."""

from __future__ import annotations

import pytest

from forebay.config.windows import WindowGrid, WindowSize
from forebay.executors.stages.turn import PreviousRun
from forebay.operators.runs.airflow_runs import OtherRun
from forebay.operators.triggers.turn import CHANGED
from forebay.operators.turn.previous_run import Outlook, TurnWait
from forebay.operators.turn.snapshot import TurnSnapshot

WINDOW = WindowGrid(WindowSize.DAY).parse("2026-03-01")


def previous(*runs: tuple[str, str | None]) -> PreviousRun:
    """Of runs as (state of the run, state of its training task)."""
    seen = tuple(OtherRun(f"run{n}", state, WINDOW, 0) for n, (state, _) in enumerate(runs))
    states = {f"run{n}": training for n, (_, training) in enumerate(runs)}
    files = TurnSnapshot(held=False, links=[], failed_at=0.0)
    return Outlook("2026-03-01", seen, states, files).previous


@pytest.mark.parametrize(
    ("run", "training", "word"),
    [
        ("queued", None, PreviousRun.ACTIVE),
        ("running", None, PreviousRun.ACTIVE),
        ("running", "deferred", PreviousRun.ACTIVE),
        ("running", "up_for_retry", PreviousRun.ACTIVE),
        ("running", "success", PreviousRun.DONE),  # it evaluates and publishes
        ("running", "failed", PreviousRun.FAILED),
        ("running", "upstream_failed", PreviousRun.FAILED),
        ("success", "success", PreviousRun.DONE),
        ("success", "skipped", PreviousRun.DONE),  # it was trained before
        ("success", None, PreviousRun.DONE),  # marked by hand
        ("failed", "success", PreviousRun.DONE),  # only its evaluation failed
        ("failed", "failed", PreviousRun.FAILED),
        ("failed", "upstream_failed", PreviousRun.FAILED),
        ("failed", "skipped", PreviousRun.FAILED),  # a person failed it before it trained
        ("failed", None, PreviousRun.FAILED),
        ("failed", "removed", PreviousRun.FAILED),
    ],
)
def test_one_run(run: str, training: str | None, word: PreviousRun) -> None:
    assert previous((run, training)) is word


def test_several_runs_of_one_window() -> None:
    """By hand and by a backfill: the one that goes on counts, then the one that trained."""
    assert previous() is PreviousRun.NONE
    assert previous(("success", "success"), ("running", None)) is PreviousRun.ACTIVE
    assert previous(("failed", "failed"), ("success", "success")) is PreviousRun.DONE


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
    assert counts == [1, 2, 0, 1]
    assert wait.woken({"state": CHANGED}).blocked_looks == 1
