"""What Airflow says about the run of the previous window, and of earlier ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forebay.config.specs.windows import Window, WindowGrid
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.start import may_begin_with
from forebay.executors.stages.turn import EarlierRun, PreviousRun, Situation
from forebay.home.paths import Home
from forebay.operators.runs.airflow_runs import (
    FINISHED_STATES,
    OtherRun,
    any_runs_until,
    latest_active_before,
    runs_of,
    task_states,
)
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.runs.task_ids import TRAINING_EXECUTORS
from forebay.operators.turn.snapshot import Turn, TurnSnapshot
from forebay.operators.turn.wait import TurnWait

# Failures longer ago than this have been seen by all later runs in their own checks.
RECENT_SECONDS = 900.0
# Between two questions to Airflow; the second where the run before is about to end.
ASK_SECONDS, ASK_SOON_SECONDS = 1.0, 0.3
_WINDOWS_MAX = 50
_TRAINED_STATES = frozenset({"success", "skipped"})


@dataclass(frozen=True)
class PreviousWindow:
    """The previous window at one moment, as far as it can be seen without starting a process.

    Where no run of it exists and the line has not begun: the latest one before it with an active
    run.

    further: the window before it. runs: of the previous window. training: the states of their
    training tasks. files: what is stored of the line. blocked: those runs are queued, and all
    running ones are of later windows. earlier: see `Situation`; it changes only with the rest.
    """

    key: str
    further: str
    runs: tuple[OtherRun, ...]
    training: dict[str, str | None]
    files: TurnSnapshot
    blocked: bool = False
    earlier: EarlierRun | None = field(default=None, compare=False)

    @property
    def run_id(self) -> str:
        """The newest run of the window; empty if there is none."""
        return self.runs[0].run_id if self.runs else ""

    @property
    def state(self) -> PreviousRun:
        return combined_state(self.runs, self.training)

    def situation(self, window: str, wait: TurnWait, answer: str | None) -> Situation:
        """What the turn of `window`, the one after this, depends on."""
        return Situation(
            window=window,
            before=self.key,
            previous=self.state,
            earlier=self.earlier,
            blocked_looks=wait.blocked_looks + 1 if self.blocked else 0,
            answer=answer,
            seconds_left=wait.seconds_left,
        )


@dataclass
class TurnObserver:
    """Observes, from inside a running task, what its window's turn depends on."""

    request: StageRequest
    grid: WindowGrid
    home: Home
    pipeline: str
    line: str
    _last: PreviousWindow | None = field(default=None, init=False)
    _ask_again: float = field(default=0.0, init=False)

    def look(self) -> PreviousWindow:
        """The state of the previous window; the same object as long as nothing changes.

        Airflow, whose answers cost more than our own rows, is asked again when those have changed,
        or after a while.
        """
        files = self._files(self.grid.before(self.request.window))
        if self._last is None or files != self._last.files or time.monotonic() >= self._ask_again:
            found = self._previous(files)
            soon = found.state is PreviousRun.ACTIVE and bool(files.links)
            self._ask_again = time.monotonic() + (ASK_SOON_SECONDS if soon else ASK_SECONDS)
            if self._last is None or found != self._last:
                self._last = replace(found, earlier=self._earlier(found))
        return self._last

    def _previous(self, files: TurnSnapshot) -> PreviousWindow:
        before = self.grid.before(self.request.window)
        runs = runs_of(self.request.dag_id, before, self.grid)
        if not runs and (begins := self._begins_with(before)) is not None:
            before, runs = begins, runs_of(self.request.dag_id, begins, self.grid)
        active = {run.state for run in runs if run.active}
        return PreviousWindow(
            key=before.key,
            further=self.grid.before(before).key,
            runs=tuple(runs),
            training=self._training_of(runs),
            files=files,
            blocked=active == {"queued"} and not any_runs_until(self.request.dag_id, before),
        )

    def _begins_with(self, before: Window) -> Window | None:
        """The window of an active run with which the line, which has no model yet, may begin.

        Without this a window whose neighbour's run was deleted would begin the line, and the models
        of all that follow would lack the windows that are on their way.
        """
        if ModelChain(self.home, self.pipeline, self.line).is_begun():
            return None
        run = latest_active_before(self.request.dag_id, before, self.grid)
        return None if run is None else run.window

    def _earlier(self, previous: PreviousWindow) -> EarlierRun | None:
        """Searched only after a failure: each earlier window costs a query to Airflow."""
        recent = time.time() - previous.files.failed_at <= RECENT_SECONDS
        if previous.state is not PreviousRun.ACTIVE or not recent:
            return None
        window = self.grid.parse(previous.key)
        for _ in range(_WINDOWS_MAX):
            window = self.grid.before(window)
            runs = runs_of(self.request.dag_id, window, self.grid)
            state = combined_state(runs, self._training_of(runs))
            if state is not PreviousRun.ACTIVE:
                trained = bool(self._files(window).links)
                chain = ModelChain(self.home, self.pipeline, self.line)
                may_begin = may_begin_with(chain, self.grid, self.grid.after(window))
                return EarlierRun(window.key, state, trained, may_begin)
        return None

    def _training_of(self, runs: Sequence[OtherRun]) -> dict[str, str | None]:
        return task_states(self.request.dag_id, [run.run_id for run in runs], TRAINING_EXECUTORS)

    def _files(self, before: Window) -> TurnSnapshot:
        further = self.grid.before(before).key
        turn = Turn(self.request.dag_id, self.pipeline, self.line, before.key, further)
        return TurnSnapshot.take(self.home, turn)


def combined_state(runs: Iterable[OtherRun], training: Mapping[str, str | None]) -> PreviousRun:
    """All runs of one window in one word, with the states of their training tasks."""
    found = {_state(run, training.get(run.run_id)) for run in runs}
    order = (PreviousRun.ACTIVE, PreviousRun.DONE, PreviousRun.FAILED)
    return next((state for state in order if state in found), PreviousRun.NONE)


def _state(run: OtherRun, training: str | None) -> PreviousRun:
    if run.active and training not in FINISHED_STATES:
        return PreviousRun.ACTIVE
    # Tasks that had not started when a user marked their run failed are skipped too.
    trained = training in _TRAINED_STATES and not (training == "skipped" and run.state == "failed")
    by_hand = run.state == "success" and training not in FINISHED_STATES
    return PreviousRun.DONE if trained or by_hand else PreviousRun.FAILED
