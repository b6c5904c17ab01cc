"""One window as the demo shows it: Airflow's states in words, with rows and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from forebay.system.output.counted import counted

# What a run is doing while this task is the first that has not ended.
_DOING = {
    "timer": "starting",
    "joiner": "planning",
    "sink": "planning",
    "data_executors": "starting a job",
    "training_executors": "training",
    "evaluate": "evaluating",
    "publish": "publishing",
}
_SOURCES = "sources."
_TASKS = tuple(_DOING)
_SHOWN = ("running", "deferred", "up_for_retry", "restarting", "failed")


@dataclass(frozen=True)
class WindowView:
    """What is known about a window at one moment.

    run: Airflow's state of the window's run; empty if there is none yet.
    tasks: Airflow's state of each task by its id; empty for a task that is not scheduled yet.
    rows: trained so far, by source. auc: of the pipeline's own paradigm on labels as known then;
    None if it is not judged yet. note: its pace.
    """

    window: str
    run: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    auc: float | None = None
    note: str = ""

    @property
    def doing(self) -> str:
        if self.run == "success":
            return "done"
        if self.run in {"", "queued"}:
            return self.run or "to come"
        if self.failed_task:
            return "failed"
        left = [name for name, state in self.tasks.items() if state != "success"]
        return self._doing_of(min(left, key=_place, default=""))

    @property
    def failed_task(self) -> str:
        """The task that made the run fail; an empty text if none did."""
        return next((name for name, state in self.tasks.items() if state == "failed"), "")

    @property
    def ended(self) -> str:
        """How many of the run's tasks have succeeded, as `7/10`."""
        return f"{Counter(self.tasks.values())['success']}/{len(self.tasks)}" if self.tasks else ""

    @property
    def at_work(self) -> str:
        """Tasks that are active or have failed, each with Airflow's state."""
        shown = [
            (name, state)
            for name, state in sorted(self.tasks.items(), key=lambda task: _place(task[0]))
            if state in _SHOWN
        ]
        sources = Counter(state for name, state in shown if name.startswith(_SOURCES))
        words = [f"{counted(count, 'source')} {state}" for state, count in sources.items()]
        words += [f"{name} {state}" for name, state in shown if not name.startswith(_SOURCES)]
        return ", ".join(words)

    def line(self, metric: str) -> str:
        auc = f"fresh AUC {metric} {self.auc:.3f}" if self.auc is not None else ""
        tasks = f"{self.ended} tasks" if self.ended else ""
        states = ", ".join(text for text in (tasks, self.at_work) if text)
        rows = "  ".join(f"{name} {count:,}" for name, count in self.rows.items())
        parts = [self.window, self.doing, states, rows, self.note, auc]
        return "  ".join(part for part in parts if part)

    def _doing_of(self, task: str) -> str:
        if task.startswith(_SOURCES):
            waits = self.tasks[task] == "deferred"
            return "waits for data" if waits else "listing"
        if task == "data_executors" and self.tasks[task] == "deferred":
            return "waits its turn"
        return _DOING.get(task, "running")


def _place(task: str) -> float:
    """Sort key of a task in the DAG: sources come right after the timer."""
    if task.startswith(_SOURCES):
        return 0.5
    return _TASKS.index(task) if task in _TASKS else len(_TASKS)
