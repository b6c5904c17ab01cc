"""The demo's backfill: created through Airflow's REST API and followed to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from examples.demo.airflow.live import Shown
from examples.demo.airflow.window_view import WindowView
from examples.demo.trained_rows import TrainedRows
from forebay.config.specs.windows import Window, WindowGrid
from forebay.embedded.airflow.http import ConflictError, NotFoundError
from forebay.embedded.airflow.rest import AirflowApi
from forebay.errors import ConfigError, InfrastructureError

POLL_SECONDS = 3.0
# One in this many of the runs after the first unfinished one is queried at each poll: their tasks
# rarely change, and each request costs the API server time that training could use.
ASKED_PART = 3
DAG_SECONDS = 90.0
LOG_LINES = 15
_WAIT_SECONDS = 0.5
_ENDED = ("success", "failed")


@dataclass
class Backfill:
    """One DAG's runs of some windows. `between` is called many times a second, `say` with news."""

    api: AirflowApi
    dag_id: str
    grid: WindowGrid
    windows: Sequence[Window]
    trained: TrainedRows
    say: Callable[[str], None]
    between: Callable[[], None]
    _tasks: dict[str, dict[str, str]] = field(default_factory=dict)
    _looks: int = 0

    def await_dag(self) -> None:
        """Wait until Airflow has parsed the DAG.

        Raises:
            ConfigError: when it cannot, with Airflow's import error.
            InfrastructureError: when it does not in time.
        """
        deadline = time.monotonic() + DAG_SECONDS
        while True:
            try:
                found = self.api.dag(self.dag_id)
                break
            except NotFoundError as error:
                for wrong in self.api.import_errors():
                    if wrong["filename"].endswith(f"{self.dag_id}.py"):
                        raise ConfigError(wrong["stack_trace"]) from error
                if time.monotonic() > deadline:
                    message = f"Airflow has no DAG {self.dag_id!r} after {DAG_SECONDS:.0f} s"
                    raise InfrastructureError(message) from error
            time.sleep(_WAIT_SECONDS)
        if found["is_paused"]:
            self.say(f"airflow  DAG {self.dag_id} is new, and so paused: unpausing it")
            self.api.pause(self.dag_id, False)  # noqa: FBT003 - named as in Airflow's API

    def create(self) -> None:
        """Create a backfill like the form in Airflow's UI, and clear runs that failed before."""
        before = self._runs()
        for window, run in before.items():
            if run["state"] == "failed":
                self.say(f"airflow  the run of {window} had failed: cleared")
                self.api.clear(self.dag_id, run["dag_run_id"])
        first, last = self.windows[0], self.windows[-1]
        asked = f"{self.dag_id} {first.key} to {last.key}, missing runs, 10 active runs"
        try:
            made = self.api.create_backfill(self.dag_id, first.start, last.start)
        except ConflictError:
            self.say("airflow  an earlier backfill continues")
            return
        missing = sum(window.key not in before for window in self.windows)
        self.say(f"airflow  backfill {made['id']}: {asked}; runs missing: {missing}")

    def follow(self, shown: Shown, deadline: float) -> None:
        """Show the runs until all of them are green.

        Raises:
            InfrastructureError: when a task failed, or at the deadline (monotonic seconds).
        """
        started = time.monotonic()
        while True:
            looked = time.monotonic()
            views = self._views()
            done = sum(view.run == "success" for view in views)
            footer = f"{done} of {len(views)} windows done after {looked - started:.0f} s"
            shown.show(views, footer, last=done == len(views))
            failed = next(
                (view for view in views if view.failed_task or view.run == "failed"), None
            )
            if failed is not None:
                raise InfrastructureError(self._failure(failed))
            if done == len(views):
                return
            if looked > deadline:
                raise InfrastructureError(
                    f"{len(views) - done} of {len(views)} windows were not done in time"
                )
            while time.monotonic() < looked + POLL_SECONDS:
                self.between()
                time.sleep(0.1)

    def _runs(self) -> dict[str, dict[str, Any]]:
        wanted = {window.key for window in self.windows}
        found = {}
        for run in self.api.dag_runs(self.dag_id):
            if run["logical_date"] is not None:
                key = self.grid.at(datetime.fromisoformat(run["logical_date"])).key
                if key in wanted:
                    found[key] = run
        return found

    def _views(self) -> list[WindowView]:
        runs = self._runs()
        self._looks += 1
        views: list[WindowView] = []
        for number, window in enumerate(self.windows):
            run = runs.get(window.key)
            foremost = all(view.run == "success" for view in views)
            asked = foremost or (number + self._looks) % ASKED_PART == 0
            trained = self.trained.of(window.key)
            views.append(
                WindowView(
                    window=window.key,
                    run=run["state"] if run else "",
                    tasks=self._task_states(window.key, run, asked=asked) if run else {},
                    rows=trained.rows,
                    auc=trained.auc,
                    note=trained.note,
                )
            )
        return views

    def _task_states(self, window: str, run: dict[str, Any], *, asked: bool) -> dict[str, str]:
        """States of a run's tasks; they are queried once more after the run has ended."""
        known = self._tasks.get(window, {})
        ended = run["state"] in _ENDED
        over = ended and bool(known) and set(known.values()) == {"success"}
        if run["state"] == "queued" or over or not (asked or ended):
            return known
        found = self.api.task_instances(self.dag_id, run["dag_run_id"])
        self._tasks[window] = {one["task_id"]: one["state"] or "" for one in found}
        return self._tasks[window]

    def _failure(self, view: WindowView) -> str:
        """The task that failed, and the last lines of its log."""
        run = self._runs()[view.window]
        tasks = self.api.task_instances(self.dag_id, run["dag_run_id"])
        red = next((one for one in tasks if one["state"] == "failed"), None)
        if red is None:
            return f"window {view.window}: its run failed, but no task did: see Airflow's UI"
        name, attempt = red["task_id"], red["try_number"]
        log = self.api.log(self.dag_id, run["dag_run_id"], name, attempt)
        told = [line for line in log if not line.startswith("::")]  # fold markers of the UI
        said = "\n".join(f"  {line}" for line in told[-LOG_LINES:])
        return f"window {view.window}: task {name} failed in try {attempt}; its log ends:\n{said}"
