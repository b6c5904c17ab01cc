"""Measures the window's model, and compares its rows: planned, served, trained."""

from __future__ import annotations

from shlex import join
from typing import Any

from airflow.sdk import Context

from forebay.executors.stages.results import EvaluateResult
from forebay.operators.links import TrainingLink
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator
from forebay.system.output.counted import counted


class EvaluateOperator(StageOperator):
    """Writes the window's metrics; fails if rows do not agree."""

    stage = "evaluate"
    ui_color = "#fff2cc"
    operator_extra_links = (TrainingLink(),)

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:  # noqa: ARG002
        result = self.call(self.command(request), EvaluateResult)
        for paradigm, metrics in result.metrics.items():
            shown = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
            self.log.info("window %s: %s: %s", result.window, paradigm, shown)
        for warning in result.warnings:
            self.log.warning("pipeline %s: %s", self.pipeline, warning)
        late = "window %s: %s: %s not trained on because the label was not known in time"
        for source, rows in result.label_not_known.items():
            self.log.info(late, result.window, source, counted(rows, "row"))
        late = "window %s: %s: %s not trained on for label %s, null or not known in time"
        for label, sources in result.labels_not_known.items():
            for source, rows in sources.items():
                self.log.info(late, result.window, source, counted(rows, "row"), label)
        windows = ["--from", result.window, "--to", result.window]
        place = ["--line", self.line, "--config", self.config]
        report = join(["forebay", "report", self.pipeline, *windows, *place])
        self.log.info("intervals and plots, in a shell: %s", report)
        return result.model_dump(mode="json")
