"""A place for the tasks that submit and follow jobs: a home, a stage that answers, other runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.home.paths import Home
from forebay.operators.runs.airflow_runs import OtherRun
from forebay.operators.runs.run_failures import note_failure
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.data_executors import DataExecutorsOperator
from forebay.operators.stages.job_operator import JobOperator
from forebay.operators.stages.training_executors import TrainingExecutorsOperator
from forebay.system.instants import now_us
from support.toy_stage import ToyStage

GRID = WindowGrid(WindowSize.DAY)
KEY = "2026-03-01"
JOB = "ads.main.2026-03-01.g1"
REQUEST = StageRequest("ads", "run", "data_executors", GRID.parse(KEY), 0, 0, reprocess=False)
SUBMITTED = {"state": "submitted", "window": KEY, "job_id": JOB, "epoch": 1, "generation": 1}
WAITING = {"state": "waiting", "window": KEY, "reason": "job other trains the line"}
HANDLE = {
    "window": KEY,
    "generation": 1,
    "job_id": JOB,
    "epoch": 1,
    "asked_by": "ads/run#0",
    "claim": "ads/run/data_executors/0",
}


class Runs:
    """Runs of the windows before, newest first, as (state, state of its training task)."""

    def __init__(self) -> None:
        self.before: list[tuple[str, str | None]] = []
        self.earlier: dict[str, tuple[str, str | None]] = {}
        self.any_goes_on = True

    def of(self, dag_id: str, window: Any, grid: Any) -> list[OtherRun]:
        assert dag_id == "ads"
        if window.key == "2026-02-28":
            return [OtherRun(f"b{n}", state, window, 0) for n, (state, _) in enumerate(self.before)]
        found = self.earlier.get(window.key)
        return [OtherRun(window.key, found[0], window, 0)] if found else []

    def states(self, dag_id: str, run_ids: list[str], task_id: str) -> dict[str, str | None]:
        assert task_id == "training_executors"
        trainings = {f"b{n}": training for n, (_, training) in enumerate(self.before)}
        trainings |= {key: training for key, (_, training) in self.earlier.items()}
        return {run_id: trainings[run_id] for run_id in run_ids}

    def until(self, dag_id: str, window: Any) -> bool:
        assert (dag_id, window.key) == ("ads", "2026-02-28")
        return self.any_goes_on


class Place:
    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.toy = ToyStage.make(root / "toy")
        self.runs = Runs()

    def data(self, **more: Any) -> DataExecutorsOperator:
        return DataExecutorsOperator(task_id="data_executors", **self._common(more))

    def training(self, **more: Any) -> TrainingExecutorsOperator:
        return TrainingExecutorsOperator(task_id="training_executors", **self._common(more))

    def _common(self, more: dict[str, Any]) -> dict[str, Any]:
        told = {"pipeline": "ads", "config": "/config", "python": self.toy.python}
        return {**told, "grace_seconds": 0, "stage_seconds": 30, **more}

    def submits(self, *answers: dict[str, Any]) -> None:
        self.toy.answer(submit=[{"prints": answer} for answer in answers])


def context(left: object = HANDLE, away_since: datetime | None = None) -> Any:
    """What training_executors finds: the other task's XCom.

    away_since: when data_executors left its place first.
    """

    def pull(task_ids: str, default: object) -> object:
        assert task_ids == "data_executors"
        return left

    return {
        "ti": SimpleNamespace(xcom_pull=pull, get_first_reschedule_date=lambda _context: away_since)
    }


def fails(place: Place, age_seconds: float = 0.0) -> None:
    note_failure(place.home, "ads", now_us() - int(age_seconds * 1_000_000))


def later(action: Callable[[], object], seconds: float = 0.3) -> None:
    threading.Timer(seconds, action).start()


@contextmanager
def killed(operator: JobOperator, seconds: float) -> Iterator[None]:
    """As Airflow ends a task: `on_kill` runs inside its work, in a signal handler."""
    before = signal.signal(signal.SIGUSR1, lambda *_: operator.on_kill())
    later(lambda: os.kill(os.getpid(), signal.SIGUSR1), seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)
