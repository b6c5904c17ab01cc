"""Adds up the counts of a window's listed sources. It moves no data."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from forebay.errors import InfrastructureError
from forebay.executors.stages.results import SourceResult
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator
from forebay.system.output.counted import counted


class JoinerOperator(StageOperator):
    """Checks that every source has a result for this window, and adds up what they found.

    Args:
        sources: names of the uses of sources and their task ids.
        **stage: as for every stage.
    """

    ui_color = "#dae8fc"

    def __init__(self, *, sources: dict[str, str], **stage: Any) -> None:
        super().__init__(**stage)
        self.sources = sources

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        results = [self._answer(name, request, context) for name in self.sources]
        rows = {result.source: result.rows for result in results}
        known = [count for count in rows.values() if count is not None]
        total = sum(known) if len(known) == len(rows) else None
        shown = "an unknown number of rows" if total is None else counted(total, "row")
        tasks = sum(result.tasks for result in results)
        found = f"{counted(len(results), 'source')}, {counted(tasks, 'task')}, {shown}"
        self.log.info("window %s: %s", request.window.key, found)
        return {
            "window": request.window.key,
            "sources": len(results),
            "tasks": tasks,
            "files": sum(result.files for result in results),
            "rows": rows,
            "rows_total": total,
            "storage_calls": sum(result.storage_calls for result in results),
        }

    def _answer(self, name: str, request: StageRequest, context: Context) -> SourceResult:
        told = context["ti"].xcom_pull(task_ids=self.sources[name], default=None)
        if told is None:
            raise InfrastructureError(
                f"source {name} left no result for window {request.window.key}: "
                f"clear the task {self.sources[name]} and its downstream tasks"
            )
        result = SourceResult.model_validate(told)
        if result.window != request.window.key or result.state != "listed":
            raise InfrastructureError(
                f"source {name} has a result for window {result.window} ({result.state}), not for "
                f"{request.window.key}: clear the task {self.sources[name]} and its downstream "
                "tasks"
            )
        return result
