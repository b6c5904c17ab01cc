"""Whose turn it is: every case of the table."""

from __future__ import annotations

import pytest

from forebay.errors import ConfigError, ForebayError, NotReadyError
from forebay.executors.stages.turn import (
    BLOCKED_LOOKS_MAX,
    EarlierRun,
    Line,
    PreviousRun,
    Situation,
    Turn,
    decide,
)

NONE, ACTIVE, DONE, FAILED = PreviousRun
GAP = "windows A to C are not trained yet"
TRAINED = Line("main", trained=2, planned=2, gap="")
BEHIND = Line("main", trained=1, planned=2, gap="")
BEGINS = Line("main", trained=None, planned=None, gap="")
MISSING = Line("main", trained=None, planned=None, gap=GAP)
COMING = MISSING._replace(holder="ads.A_C", coming=True)
SILENT = Line("main", trained=None, planned=1, gap="", may_begin=True)
BUSY = TRAINED._replace(holder="ads-main-D-g1")


@pytest.mark.parametrize(
    ("previous", "line", "action", "words"),
    [
        (NONE, MISSING, "refuse", GAP),
        (NONE, BUSY, "wait", "window C waits for line 'main', which job ads-main-D-g1 trains"),
        (NONE, MISSING._replace(holder="other"), "refuse", GAP),
        (NONE, COMING, "wait", "window C waits for line 'main', which job ads.A_C trains"),
        (DONE, COMING, "wait", "job ads.A_C"),
        (FAILED, COMING, "wait", "job ads.A_C"),
        (FAILED, BEHIND._replace(holder="ads.A_C", coming=True), "wait", "job ads.A_C"),
        (ACTIVE, BUSY, "wait", "window B"),
        (DONE, BEGINS, "refuse", "marked as success by hand?"),
        (DONE, MISSING, "refuse", "clear that run"),
        (DONE, BUSY, "wait", "ads-main-D-g1"),
        (FAILED, BEHIND, "refuse", "the run of window B, which comes before it, failed"),
        (FAILED, BEGINS, "refuse", "Clear that run and then this one"),
        (FAILED, MISSING, "refuse", "missing and errored runs"),
        (FAILED, SILENT._replace(gap=GAP), "refuse", GAP),
        (FAILED, SILENT._replace(holder="other"), "wait", "which job other trains"),
    ],
)
def test_what_a_stage_sees(previous: PreviousRun, line: Line, action: str, words: str) -> None:
    check(decide(Situation("C", "B", previous, line=line)), action, words)


@pytest.mark.parametrize(
    ("previous", "more", "action", "words"),
    [
        (DONE, {"answer": "busy"}, "wait", "busy"),
        (DONE, {"answer": ""}, "wait", ""),
        (ACTIVE, {}, "wait", "window C waits for window B, whose run has not ended"),
        (ACTIVE, {"earlier": EarlierRun("A", FAILED, trained=False)}, "refuse", "run of window A,"),
        (ACTIVE, {"blocked_looks": BLOCKED_LOOKS_MAX + 1}, "refuse", "running backwards?"),
        # It has trained, and only what comes after training is queued again.
        (DONE, {"blocked_looks": BLOCKED_LOOKS_MAX + 1, "answer": "busy"}, "wait", "busy"),
    ],
)
def test_in_a_task(previous: PreviousRun, more: dict[str, object], action: str, words: str) -> None:
    check(decide(Situation("C", "B", previous)._replace(**more)), action, words)


def check(turn: Turn, action: str, words: str) -> None:
    assert turn.action == action
    assert words in turn.reason
    assert bool(words) == bool(turn.reason)


@pytest.mark.parametrize(
    ("previous", "line", "seconds_left", "error"),
    [
        (DONE, TRAINED, 0.0, None),  # a turn that has come needs no more wait
        (ACTIVE, None, 0.1, None),
        (ACTIVE, None, 0.0, NotReadyError),
        (DONE, BUSY, -1.0, NotReadyError),
        (DONE, MISSING, 0.0, ConfigError),
    ],
)
def test_the_longest_wait_has_an_error_of_its_own(
    previous: PreviousRun, line: Line | None, seconds_left: float, error: type[ForebayError] | None
) -> None:
    turn = decide(Situation("C", "B", previous, line=line, seconds_left=seconds_left))
    if error is None:
        turn.require()
        return
    with pytest.raises(error) as raised:
        turn.require()
    assert type(raised.value) is error
    assert ("schedule.turn_wait" in str(raised.value)) == (error is NotReadyError)
