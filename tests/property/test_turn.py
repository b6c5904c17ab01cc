"""Whose turn it is: what holds in every situation, whoever asks."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.executors.stages.turn import (
    BLOCKED_LOOKS_MAX,
    EarlierRun,
    Line,
    PreviousRun,
    Situation,
    decide,
)

generations = st.none() | st.integers(1, 5)
lines = st.builds(
    Line,
    name=st.just("main"),
    trained=generations,
    planned=generations,
    gap=st.sampled_from(["", "gap"]),
    holder=st.sampled_from(["", "job"]),
    coming=st.booleans(),
    may_begin=st.booleans(),
).map(lambda line: line if line.trained is None else line._replace(may_begin=False))
runs = st.sampled_from(list(PreviousRun))
ended = st.sampled_from([run for run in PreviousRun if run is not PreviousRun.ACTIVE])
situations = st.builds(
    Situation,
    window=st.just("C"),
    before=st.just("B"),
    previous=runs,
    earlier=st.none() | st.builds(EarlierRun, st.just("A"), ended, st.booleans(), st.booleans()),
    blocked_looks=st.integers(0, BLOCKED_LOOKS_MAX + 2),
    line=st.none() | lines,
    answer=st.none() | st.just("the line is busy"),
    seconds_left=st.sampled_from([-1.0, 0.0, 1.0, math.inf]),
)


@given(situations)
def test_a_window_never_goes_while_the_window_before_or_another_trains(seen: Situation) -> None:
    if decide(seen).action == "go":
        assert seen.previous is not PreviousRun.ACTIVE
        assert seen.line is None or not seen.line.holder
        assert seen.answer is None


@settings(max_examples=500)
@given(situations, lines, ended)
def test_a_window_goes_exactly_on_a_model_or_where_the_line_begins(
    seen: Situation, line: Line, previous: PreviousRun
) -> None:
    begins = (previous is PreviousRun.NONE or line.may_begin) and not line.gap
    starts = begins if line.trained is None else True
    if previous is PreviousRun.FAILED and not line.may_begin:
        starts = not line.outdated
    free = not line.holder and seen.answer is None
    turn = decide(seen._replace(line=line, previous=previous))
    assert (turn.action == "go") == (starts and free)


@settings(max_examples=500)
@given(situations)
def test_a_window_waits_exactly_for_what_can_come(seen: Situation) -> None:
    """Waiting for a run that has ended would hold the place that its next attempt needs."""
    turn = decide(seen)
    if seen.previous is PreviousRun.ACTIVE:
        stuck = seen.earlier is not None and seen.earlier[1:] == (PreviousRun.FAILED, False, False)
        can_come = not stuck and seen.blocked_looks <= BLOCKED_LOOKS_MAX
        assert (turn.action == "wait") == (can_come and seen.seconds_left > 0)
        assert turn.late == (can_come and seen.seconds_left <= 0)
    elif turn.action == "wait":
        held = seen.line is not None and seen.line.holder
        assert held or seen.answer is not None
        assert seen.seconds_left > 0


@given(situations)
def test_whatever_waits_goes_once_the_window_before_is_trained_and_the_line_is_free(
    seen: Situation,
) -> None:
    if decide(seen).action != "wait":
        return
    line = Line("main", trained=1, planned=1, gap="") if seen.line is None else seen.line
    trained = max(line.planned or 1, line.trained or 1)
    came = seen._replace(
        previous=PreviousRun.DONE,
        earlier=None,
        line=line._replace(trained=trained, holder="", may_begin=False),
        answer=None,
    )
    assert decide(came).action == "go"


@given(situations, st.integers(0, 9), st.floats(0, 1e6))
def test_a_refusal_is_stable(seen: Situation, looks: int, seconds: float) -> None:
    """Time alone changes nothing about it."""
    later = seen._replace(
        blocked_looks=seen.blocked_looks + looks, seconds_left=seen.seconds_left - seconds
    )
    first, again = decide(seen), decide(later)
    if first.action == "refuse":
        assert again.action == "refuse"
        if not first.late:
            assert again == first


@given(situations, lines)
def test_the_stage_never_overrules_its_task(seen: Situation, line: Line) -> None:
    """Who sees the line too finds more reasons against a turn, and takes none back."""
    task, stage = decide(seen._replace(line=None)), decide(seen._replace(line=line))
    if task.action != "go":
        assert stage.action != "go"
    if task.action == "refuse":
        assert stage.action == "refuse"
        assert stage.late or task.late or stage == task


@given(situations)
def test_whatever_does_not_go_says_why(seen: Situation) -> None:
    turn = decide(seen)
    assert bool(turn.reason) == (turn.action != "go")
    assert turn.action == "refuse" or not turn.late
