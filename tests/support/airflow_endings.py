"""The table of how each way to start a run has to end: the run, its tasks, the generation."""

from __future__ import annotations

from support.airflow_cluster import Airflow, Run
from support.airflow_pipelines import ADS, CATCHUP, MARKS, NARROW, Pipeline
from support.airflow_truth import generations

STAGES = ("joiner", "sink", "data_executors", "training_executors", "evaluate", "publish")


def all_tasks(pipeline: Pipeline) -> list[str]:
    return ["timer", *(f"sources.{name}" for name in pipeline.sources), *STAGES]


def done(pipeline: Pipeline) -> dict[str, str | None]:
    states: dict[str, str | None] = dict.fromkeys(all_tasks(pipeline), "success")
    return states


def nothing_to_do(pipeline: Pipeline) -> dict[str, str | None]:
    """A window that was trained before: the timer says so, and skips the rest."""
    states: dict[str, str | None] = dict.fromkeys(all_tasks(pipeline), "skipped")
    return states | {"timer": "success"}


def failed_at(
    pipeline: Pipeline, task: str, behind: str = "upstream_failed"
) -> dict[str, str | None]:
    """Red at this task, and nothing behind it ran."""
    order = all_tasks(pipeline)
    rest = STAGES if task.startswith("sources.") else order[order.index(task) + 1 :]
    states: dict[str, str | None] = dict.fromkeys(order, "success")
    return states | dict.fromkeys(rest, behind) | {task: "failed"}


# How each kind of asking has to end: the run, its tasks, and the window's newest generation.
Ending = tuple[str, dict[str, str | None], int]
ENDINGS: dict[str, Ending] = {
    "manual run at 10:37, hourly, fresh": ("success", done(NARROW), 1),
    "manual run at 10:38, hourly, done already": ("success", nothing_to_do(NARROW), 1),
    "manual run at 10:38, daily, done already": ("success", nothing_to_do(MARKS), 1),
    "catchup, trained by hand before": ("success", nothing_to_do(CATCHUP), 1),
    "catchup, missed while the scheduler was down": ("success", done(CATCHUP), 1),
    "clear of the sink alone": ("success", done(ADS), 1),
    "clear of data_executors and what is behind it": ("success", done(ADS), 2),
    "clear of a whole run": ("success", done(ADS), 3),
    "marked failed while it trains": (
        "failed",
        failed_at(MARKS, "training_executors", behind="skipped"),
        0,
    ),
    "cleared while paused": ("queued", dict.fromkeys(all_tasks(MARKS), None), 0),
    "unpaused": ("success", done(MARKS), 1),
}


def assert_ending(airflow: Airflow, kind: str, pipeline: Pipeline, run: Run, number: int) -> None:
    state, tasks, generation = ENDINGS[kind]
    found = generations(airflow.project, pipeline, number)
    assert (run.state, airflow.states(run), max(found, default=0)) == (state, tasks, generation), (
        f"{kind}\n{airflow.diagnosis(pipeline)}"
    )


def assert_last_lines(airflow: Airflow, run: Run, task: str, *words: str) -> None:
    """The end of a red task's log names the cause, and nothing was tried again."""
    last = "\n".join(airflow.log(run, task).splitlines()[-8:])
    assert [word for word in words if word not in last] == [], last
    assert airflow.tasks(run)[task]["try_number"] == 1
