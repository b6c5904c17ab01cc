"""Writes the window's plan to the ledger, in chronological order."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from forebay.executors.stages.results import SinkResult
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator


class SinkOperator(StageOperator):
    """Records what the sources have listed as one plan of the window."""

    stage = "sink"
    ui_color = "#dae8fc"

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:  # noqa: ARG002
        options = ["--asked-by", request.asked_by, *(["--again"] if request.again else [])]
        return self.call(self.command(request, *options), SinkResult).model_dump(mode="json")
