"""Measures the window's model, and compares its rows: planned, served, trained."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from forebay.executors.stages.results import EvaluateResult
from forebay.operators.links import TrainingLink
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator


class EvaluateOperator(StageOperator):
    """Writes the window's metrics; fails if rows do not agree."""

    stage = "evaluate"
    ui_color = "#fff2cc"
    operator_extra_links = (TrainingLink(),)

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:  # noqa: ARG002
        return self.call(self.command(request), EvaluateResult).model_dump(mode="json")
