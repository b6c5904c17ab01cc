"""Whose turn it is: every case of the table."""

from __future__ import annotations

import pytest

from forebay.executors.stages.turn import Line, PreviousRun, decide

NONE, ACTIVE, DONE, FAILED = PreviousRun
GAP = "windows A up to C are not trained yet"
FIRST = Line(before="", trained=None, planned=None, gap="")
TRAINED = Line(before="B", trained=2, planned=2, gap="")
PLANNED = Line(before="B", trained=None, planned=1, gap=GAP)
BEHIND = Line(before="B", trained=1, planned=2, gap="")
BEGINS = Line(before="B", trained=None, planned=None, gap="")
MISSING = Line(before="B", trained=None, planned=None, gap=GAP)


@pytest.mark.parametrize(
    ("previous", "line", "action", "words"),
    [
        (NONE, FIRST, "go", ""),
        (NONE, TRAINED, "go", ""),
        (NONE, BEHIND, "go", ""),
        (NONE, BEGINS, "go", ""),
        (NONE, MISSING, "refuse", GAP),
        (NONE, PLANNED, "refuse", GAP),
        (ACTIVE, TRAINED, "wait", "whose run goes on"),
        (ACTIVE, BEHIND, "wait", "whose run goes on"),
        (ACTIVE, MISSING, "wait", "window B"),
        (DONE, TRAINED, "go", ""),
        (DONE, BEHIND, "go", ""),
        (DONE, BEGINS, "refuse", "marked success by hand?"),
        (DONE, MISSING, "refuse", "clear that run"),
        (FAILED, TRAINED, "go", ""),
        (FAILED, BEHIND, "refuse", "the run of window B, which comes before it, failed"),
        (FAILED, BEGINS, "refuse", "Clear that run and then this one"),
        (FAILED, MISSING, "refuse", "missing and errored runs"),
    ],
)
def test_each_case(previous: PreviousRun, line: Line, action: str, words: str) -> None:
    turn = decide("C", previous, line)
    assert turn.action == action
    assert words in turn.reason
    assert bool(turn.reason) == (action != "go")
