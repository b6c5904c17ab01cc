"""Whose turn it is: what holds for every line and every run before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forebay.executors.stages.turn import Line, PreviousRun, decide

generations = st.none() | st.integers(1, 5)
lines = st.builds(
    Line,
    before=st.just("B"),
    trained=generations,
    planned=generations,
    gap=st.sampled_from(["", "gap"]),
)
runs = st.sampled_from(list(PreviousRun))


@given(runs, lines)
def test_a_window_goes_only_on_a_model_or_where_the_line_begins(
    previous: PreviousRun, line: Line
) -> None:
    turn = decide("C", previous, line)
    begins = previous is PreviousRun.NONE and not line.gap
    if turn.action == "go":
        assert line.trained is not None or begins
        assert previous is not PreviousRun.ACTIVE
    else:
        assert turn.reason


@given(runs, lines)
def test_whatever_waits_goes_once_the_window_before_is_trained(
    previous: PreviousRun, line: Line
) -> None:
    if decide("C", previous, line).action != "wait":
        return
    done = line._replace(trained=max(line.planned or 1, line.trained or 1))
    assert decide("C", PreviousRun.DONE, done).action == "go"


@given(runs, lines)
def test_a_window_waits_exactly_for_a_run_that_goes_on(previous: PreviousRun, line: Line) -> None:
    """Waiting for one that has ended would hold the place that its next attempt needs."""
    waits = decide("C", previous, line).action == "wait"
    assert waits == (previous is PreviousRun.ACTIVE)
