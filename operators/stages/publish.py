"""Makes the window's model the one that serves, unless there is a reason not to."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from forebay.executors.stages.results import PublishResult
from forebay.operators.links import MetricsLink, TrainingLink
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.runs.task_ids import TRAINING_EXECUTORS
from forebay.operators.runs.xcoms import TrainedWindow, left_by
from forebay.operators.stages.base import StageOperator


class PublishOperator(StageOperator):
    """Moves the pointer to the served model: never to a stale or an older one."""

    stage = "publish"
    ui_color = "#f8cecc"
    operator_extra_links = (TrainingLink(), MetricsLink())

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        generation = left_by(TRAINING_EXECUTORS, TrainedWindow, context).generation
        command = self.command(request, "--generation", str(generation))
        return self.call(command, PublishResult).model_dump(mode="json")
