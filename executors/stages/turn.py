"""Whether it is a window's turn to be trained: a pure decision, and the only one.

A window's model starts from the model of the window before it, and Airflow starts many windows at
once, so each asks here: first its task, with what Airflow knows, then the stage that submits, with
the state of the model line. Neither decides any part of it by itself.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal, NamedTuple

from forebay.errors import ConfigError, NotReadyError

# A queued run starts within seconds if there is a free slot; looks are minutes apart.
BLOCKED_LOOKS_MAX = 3


class PreviousRun(StrEnum):
    """What Airflow says of the run of the window before.

    none: there is no such run. active: it has not finished its training yet. done: its training
    has finished. failed: it has ended without finishing it.
    """

    NONE = "none"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


class EarlierRun(NamedTuple):
    """The nearest window, further back than the previous one, whose run has ended.

    may_begin: whether the line may begin after it, see `may_begin_with`.
    """

    window: str
    run: PreviousRun
    trained: bool
    may_begin: bool = False

    @property
    def blocks(self) -> bool:
        """Whether no later window is trained until a person has dealt with it."""
        return self.run is PreviousRun.FAILED and not self.trained and not self.may_begin


class Line(NamedTuple):
    """The state of a model line around a window.

    trained, planned: newest generations of the window before, None where there is none. gap: why
    the line cannot continue with this window, empty when it can or when it begins here. holder:
    the job of another window that trains the line now; empty when there is none. coming: whether
    that job trains the window before. may_begin: whether the line may begin with this window
    although there were runs before it: none of their windows has rows.
    """

    name: str
    trained: int | None
    planned: int | None
    gap: str
    holder: str = ""
    coming: bool = False
    may_begin: bool = False

    @property
    def outdated(self) -> bool:
        return self.trained is None or (self.planned or 0) > self.trained


class Situation(NamedTuple):
    """What a window's turn depends on, as far as the caller can see it.

    What a caller cannot see keeps its default, which never blocks.

    window, before: keys of the window and of the one before it; `before` is empty where the
    dataset begins. previous: the run of the window before. earlier: what that run itself waits
    for, past runs that only wait; None if not looked up. blocked_looks: how many looks in a row,
    this one included, found that run queued while all active runs are of later windows. line:
    None if not looked up. answer: the stage's reason if it answered `wait` in this situation; None
    if it was not asked. seconds_left: of the longest wait.
    """

    window: str
    before: str
    previous: PreviousRun
    earlier: EarlierRun | None = None
    blocked_looks: int = 0
    line: Line | None = None
    answer: str | None = None
    seconds_left: float = math.inf


class Turn(NamedTuple):
    """go: train now. wait: ask again later. refuse: asking again would change nothing.

    late: it is refused only because the longest wait is over.
    """

    action: Literal["go", "wait", "refuse"]
    reason: str = ""
    late: bool = False

    def require(self) -> None:
        """Do nothing for `go` and `wait`, and raise for `refuse`.

        Raises:
            NotReadyError: when the longest wait is over.
            ConfigError: when it is refused for any other reason.
        """
        if self.action == "refuse":
            raise (NotReadyError if self.late else ConfigError)(self.reason)


def decide(seen: Situation) -> Turn:
    refusal = _refusal(seen)
    if refusal:
        return Turn("refuse", refusal)
    reason = _wait(seen)
    if reason is None:
        return Turn("go")
    if seen.seconds_left > 0:
        return Turn("wait", reason)
    over = "it has waited as long as schedule.turn_wait allows: clear this task to wait again"
    return Turn("refuse", f"{reason}; {over}", late=True)


def _refusal(seen: Situation) -> str:
    """Why the turn can never come unless a person acts; an empty text when it can."""
    if seen.previous is PreviousRun.ACTIVE:
        return _never_ends(seen)
    return "" if seen.line is None else _no_model(seen, seen.line)


def _never_ends(seen: Situation) -> str:
    if seen.earlier is not None and seen.earlier.blocks:
        return _after_failed(seen.window, seen.earlier.window)
    if seen.blocked_looks > BLOCKED_LOOKS_MAX:
        return (
            f"window {seen.window} waits for window {seen.before}, whose run is queued "
            "and cannot start: runs of later windows, which wait for it, fill every active-run "
            "slot (is a backfill running backwards?), or its backfill was cancelled (mark that run "
            "failed, then create a backfill with Missing and Errored Runs). This run ends to free "
            f"its slot: clear it once window {seen.before} is trained"
        )
    return ""


def _no_model(seen: Situation, line: Line) -> str:
    """Why the line has no model to start from, when nothing is going to train one."""
    if line.holder and line.coming:
        return ""
    if line.may_begin:
        return line.gap
    if seen.previous is PreviousRun.FAILED and line.outdated:
        return _after_failed(seen.window, seen.before)
    if line.trained is not None:
        return ""
    if seen.previous is PreviousRun.DONE:
        return (
            f"window {seen.before} is not trained although its run says so (skipped, or "
            f"marked as success by hand?): clear that run, then this one ({seen.window})"
        )
    return line.gap


def _after_failed(window: str, failed: str) -> str:
    """Why a window's run ends, and what to do once the cause of the failed one is fixed.

    It does not wait: waiting runs would fill every active-run slot, and the failed run, once
    cleared, could not start.
    """
    return (
        f"window {window} cannot train: the run of window {failed}, which comes before it, failed. "
        "Clear that run and then this one, or create a backfill over both for missing and errored "
        "runs; to continue without that window, delete its run and clear this one"
    )


def _wait(seen: Situation) -> str | None:
    if seen.previous is PreviousRun.ACTIVE:
        return f"window {seen.window} waits for window {seen.before}, whose run has not ended"
    if seen.line is not None and seen.line.holder:
        name, holder = seen.line.name, seen.line.holder
        job = f"job {holder}" if " " not in holder else holder  # which may not be known yet
        return f"window {seen.window} waits for line {name!r}, which {job} trains"
    return seen.answer
