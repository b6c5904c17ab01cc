"""What the job's two tasks leave for each other and for later tasks: references and counts."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from forebay.errors import UsageError
from forebay.operators.runs.task_ids import DATA_EXECUTORS, TRAINING_EXECUTORS
from forebay.system.message import Message


class SubmittedJob(Message):
    """A submitted job. Empty `job_id`: the window was already trained, nothing was submitted.

    epoch: of the submission. asked_by: the pass that submitted it. claim: identifies submissions
    of the same work.
    """

    window: str
    generation: int
    job_id: str = ""
    epoch: int = 0
    asked_by: str
    claim: str


class TrainedWindow(Message):
    """A trained window. rows: by source, from the model's own sums."""

    window: str
    generation: int
    job_id: str
    rows: dict[str, int]
    steps: int
    seconds: float


def submitted_job(context: Context) -> SubmittedJob:
    """The result of data_executors in this run.

    Raises:
        UsageError: when it left nothing.
    """
    return SubmittedJob.model_validate(_left_by(DATA_EXECUTORS, context))


def trained_generation(context: Context) -> int:
    """The generation that training_executors trained in this run.

    Raises:
        UsageError: when it left nothing.
    """
    return TrainedWindow.model_validate(_left_by(TRAINING_EXECUTORS, context)).generation


def _left_by(task_id: str, context: Context) -> dict[str, Any]:
    left = context["ti"].xcom_pull(task_ids=task_id, default=None)
    if not isinstance(left, dict):
        raise UsageError(
            f"the task {task_id} of this run left no result: clear it and its downstream tasks, "
            "or the whole run"
        )
    return left
