"""Whether it is a window's turn to be trained: a pure decision.

A window's model starts from the model of the window before it, and Airflow starts many windows at
once, so each asks here. What Airflow knows of the run before and what the model line holds decide.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple


class PreviousRun(StrEnum):
    """What Airflow says of the run of the window before.

    none: there is no such run. active: it has not come to the end of its training yet. done: its
    training has finished. failed: it has ended without.
    """

    NONE = "none"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


class Line(NamedTuple):
    """What a model line holds around a window.

    before: key of the window before it; empty where the dataset begins. trained, planned: newest
    generations of the window before, None where there is none. gap: why the line cannot go on
    with this window, empty when it can or when it begins here.
    """

    before: str
    trained: int | None
    planned: int | None
    gap: str


class Turn(NamedTuple):
    """go: train now. wait: ask again later. refuse: asking again changes nothing."""

    action: Literal["go", "wait", "refuse"]
    reason: str = ""


def behind_failed(window: str, failed: str) -> str:
    """Why a window ends, and what a person does once the failed one's cause is mended.

    It does not wait: waiting runs hold the places of runs that may be active at a time, and the
    failed run, cleared, would find none.
    """
    return (
        f"window {window} cannot train: the run of window {failed}, which comes before it, failed. "
        "Clear that run and then this one, or create a backfill over both for missing and errored "
        "runs; to go on without that window, delete its run and clear this one"
    )


def decide(window: str, previous: PreviousRun, line: Line) -> Turn:
    """Decide on one window."""
    before = line.before
    if previous is PreviousRun.ACTIVE:
        return Turn("wait", f"window {window} waits for window {before}, whose run goes on")
    behind = (line.planned or 0) > (line.trained or 0)
    if previous is PreviousRun.FAILED and (line.trained is None or behind):
        return Turn(
            "refuse",
            behind_failed(window, before),
        )
    if line.trained is not None:
        return Turn("go")
    if previous is PreviousRun.DONE:
        return Turn(
            "refuse",
            f"window {before} is not trained although its run says so (marked success by hand?): "
            f"clear that run, then this one ({window})",
        )
    return Turn("refuse", line.gap) if line.gap else Turn("go")
