"""What the job's two tasks leave for each other and for later tasks: references and counts."""

from __future__ import annotations

from typing import TypeVar

from airflow.sdk import Context

from forebay.errors import UsageError
from forebay.system.message import Message

Left = TypeVar("Left", bound=Message)


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


def left_by(task_id: str, kind: type[Left], context: Context) -> Left:
    """The result of another task of this run.

    Raises:
        UsageError: when it left nothing.
    """
    left = context["ti"].xcom_pull(task_ids=task_id, default=None)
    if not isinstance(left, dict):
        raise UsageError(
            f"the task {task_id} of this run left no result: clear it and its downstream tasks, "
            "or the whole run"
        )
    return kind.model_validate(left)
