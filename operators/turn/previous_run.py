"""What Airflow says about the run of the window before, as the planner of turns wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forebay.executors.stages.turn import PreviousRun
from forebay.operators.runs.airflow_runs import FINISHED_STATES, OtherRun
from forebay.operators.triggers.base import QUIET_SECONDS
from forebay.operators.triggers.turn import CHANGED
from forebay.operators.turn.snapshot import TurnSnapshot
from forebay.system.message import Message

FIRST_LOOK_SECONDS = 60.0
LONGEST_LOOK_SECONDS = 300.0
# A queued run starts within seconds where there is room; these looks are minutes apart.
BLOCKED_LOOKS_MAX = 3
_TRAINED_STATES = frozenset({"success", "skipped"})


class TurnWait(Message):
    """A wait for the turn, carried from deferral to deferral.

    deadline: when to give up, as `time.time` counts. next_look: seconds after which the task
    looks although no file has changed. blocked_looks: how many looks on end found that the run
    of the window before cannot start.
    """

    deadline: float
    next_look: float = FIRST_LOOK_SECONDS
    blocked_looks: int = 0

    def longer(self, *, blocked: bool) -> TurnWait:
        """The wait goes on, with a longer sleep: each look costs a start of a task."""
        return TurnWait(
            deadline=self.deadline,
            next_look=min(2 * self.next_look, LONGEST_LOOK_SECONDS),
            blocked_looks=self.blocked_looks + 1 if blocked else 0,
        )

    def woken(self, event: Mapping[str, Any]) -> TurnWait:
        """After a change the run of the window before ends within seconds: look again soon."""
        if event.get("state") != CHANGED:
            return self
        return self.model_copy(update={"next_look": QUIET_SECONDS})


@dataclass(frozen=True)
class Outlook:
    """All that a window's turn depends on, as far as it can be seen without a process.

    before: key of the window before. runs: its runs. states: of their training tasks. files:
    what the line's files say. blocked: those runs are queued, and all that run stand for later
    windows.
    """

    before: str
    runs: tuple[OtherRun, ...]
    states: dict[str, str | None]
    files: TurnSnapshot
    blocked: bool = False

    @property
    def run_id(self) -> str:
        """The newest run of the window before; empty where there is none."""
        return self.runs[0].run_id if self.runs else ""

    @property
    def previous(self) -> PreviousRun:
        """The window before in one word, over all of its runs."""
        return in_one_word(self.runs, self.states)


def in_one_word(runs: Iterable[OtherRun], states: Mapping[str, str | None]) -> PreviousRun:
    """All runs of one window, with the states of their training tasks."""
    found = {_word(run, states.get(run.run_id)) for run in runs}
    order = (PreviousRun.ACTIVE, PreviousRun.DONE, PreviousRun.FAILED)
    return next((word for word in order if word in found), PreviousRun.NONE)


def _word(run: OtherRun, training: str | None) -> PreviousRun:
    """How far one run has come with its training."""
    if run.active and training not in FINISHED_STATES:
        return PreviousRun.ACTIVE
    # Tasks that had not begun when a person failed their run are skipped as well.
    trained = training in _TRAINED_STATES and not (training == "skipped" and run.state == "failed")
    by_hand = run.state == "success" and training not in FINISHED_STATES
    return PreviousRun.DONE if trained or by_hand else PreviousRun.FAILED
