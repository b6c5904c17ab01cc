"""What Airflow knows about the other runs of a DAG. Called from inside a running task.

The task's supervisor answers (`SUPERVISOR_COMMS`) with the rights of that task, so nothing here
opens Airflow's database or needs a login.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import (
    GetPreviousDagRun,
    GetTaskStates,
    PreviousDagRunResult,
    TaskStatesResult,
)

from forebay.config.specs.windows import Window, WindowGrid

if TYPE_CHECKING:
    from airflow.sdk.api.datamodels._generated import DagRun

ACTIVE_STATES = ("running", "queued")
FINISHED_STATES = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
# Run ids are part of a URL, whose length is limited.
_RUNS_PER_QUESTION = 50
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class OtherRun:
    run_id: str
    state: str
    window: Window
    clear_number: int

    @property
    def active(self) -> bool:
        return self.state in ACTIVE_STATES


def runs_of(dag_id: str, window: Window, grid: WindowGrid) -> list[OtherRun]:
    """All runs of one window, however they were created, newest logical date first."""
    return list(_walk(dag_id, grid, window.end, window.start, None))


def active_runs_near(
    dag_id: str, window: Window, grid: WindowGrid, windows_around: int
) -> list[OtherRun]:
    """Queued or running runs of windows at most `windows_around` before or after one."""
    reach = windows_around * (window.end - window.start) + _INSTANT
    first, last = window.start - reach, window.start + reach
    return [run for state in ACTIVE_STATES for run in _walk(dag_id, grid, last, first, state)]


def latest_active_before(dag_id: str, window: Window, grid: WindowGrid) -> OtherRun | None:
    """The queued or running run of the latest window before one; None if there is none."""
    found = (_previous(dag_id, window.start, state) for state in ACTIVE_STATES)
    runs = [_other(run, run.logical_date, grid) for run in found if run and run.logical_date]
    return max(runs, key=lambda run: run.window, default=None)


def any_runs_until(dag_id: str, window: Window) -> bool:
    """Whether a run of this window or an earlier one is running, not just queued."""
    return _previous(dag_id, window.end, "running") is not None


def latest_before(dag_id: str, window: Window) -> DagRun | None:
    """The run of the latest window before one, however it was created."""
    return _previous(dag_id, window.start, None)


def task_states(dag_id: str, run_ids: Iterable[str], task_id: str) -> dict[str, str | None]:
    """The state of one task in several runs, by run id. None: not scheduled yet."""
    ids = list(run_ids)
    found: dict[str, str | None] = {}
    for begin in range(0, len(ids), _RUNS_PER_QUESTION):
        some = ids[begin : begin + _RUNS_PER_QUESTION]
        answer = task_runner.SUPERVISOR_COMMS.send(
            GetTaskStates(dag_id=dag_id, task_ids=[task_id], run_ids=some)
        )
        if not isinstance(answer, TaskStatesResult):
            raise TypeError(f"Airflow answered {type(answer).__name__} about task states")
        for run_id, states in answer.task_states.items():
            found[run_id] = states.get(task_id)
    return found


def _walk(
    dag_id: str, grid: WindowGrid, before: datetime, not_before: datetime, state: str | None
) -> Iterator[OtherRun]:
    """Runs from late to early logical dates: Airflow returns one at a time."""
    while True:
        run = _previous(dag_id, before, state)
        if run is None or run.logical_date is None or run.logical_date < not_before:
            return
        yield _other(run, run.logical_date, grid)
        before = run.logical_date


def _other(run: DagRun, logical_date: datetime, grid: WindowGrid) -> OtherRun:
    return OtherRun(
        run_id=run.run_id,
        state=str(run.state.value),
        window=grid.at(logical_date),
        clear_number=run.clear_number or 0,
    )


def _previous(dag_id: str, before: datetime, state: str | None) -> DagRun | None:
    """The run with the latest logical date before an instant."""
    answer = task_runner.SUPERVISOR_COMMS.send(
        GetPreviousDagRun(dag_id=dag_id, logical_date=before, state=state)
    )
    if not isinstance(answer, PreviousDagRunResult):
        raise TypeError(f"Airflow answered {type(answer).__name__} about runs")
    return answer.dag_run
