"""What lies ahead of a window on its line: Airflow's runs of the windows before it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from forebay.config.windows import WindowGrid
from forebay.executors.stages.turn import PreviousRun
from forebay.home.paths import Home
from forebay.operators.runs.airflow_runs import OtherRun, any_runs_until, runs_of, task_states
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.runs.task_ids import TRAINING_EXECUTORS
from forebay.operators.turn.previous_run import Outlook, in_one_word
from forebay.operators.turn.snapshot import TurnSnapshot

# Runs that failed longer ago were seen by those behind them, each at its own look.
RECENT_SECONDS = 900.0
_WINDOWS_MAX = 50


@dataclass(frozen=True)
class WindowsAhead:
    """Called from inside a running task, for the window that it is asked for."""

    asked: StageRequest
    grid: WindowGrid
    home: Home
    pipeline: str
    line: str

    def outlook(self) -> Outlook:
        """How the window before stands."""
        before = self.grid.before(self.asked.window)
        runs = runs_of(self.asked.dag_id, before, self.grid)
        active = {run.state for run in runs if run.active}
        return Outlook(
            before=before.key,
            runs=tuple(runs),
            states=self._training_of(runs),
            files=self._files(before.key),
            blocked=active == {"queued"} and not any_runs_until(self.asked.dag_id, before),
        )

    def failed(self, outlook: Outlook) -> str:
        """The failed and untrained window that all runs between it and this one wait for.

        Empty where there is none, or when no run has failed for long.
        """
        if time.time() - outlook.files.failed_at > RECENT_SECONDS:
            return ""
        window = self.grid.before(self.asked.window)
        for _ in range(_WINDOWS_MAX):
            window = self.grid.before(window)
            runs = runs_of(self.asked.dag_id, window, self.grid)
            word = in_one_word(runs, self._training_of(runs))
            if word is not PreviousRun.ACTIVE:
                untrained = not self._files(window.key).links
                return window.key if word is PreviousRun.FAILED and untrained else ""
        return ""

    def _training_of(self, runs: Sequence[OtherRun]) -> dict[str, str | None]:
        return task_states(self.asked.dag_id, [run.run_id for run in runs], TRAINING_EXECUTORS)

    def _files(self, before: str) -> TurnSnapshot:
        return TurnSnapshot.take(self.home, self.asked.dag_id, self.pipeline, self.line, before)
