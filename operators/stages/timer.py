"""The first task: has the window ended, and is there anything to do?"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import DownstreamTasksSkipped

from forebay.errors import UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.start import gap_before
from forebay.executors.stages.results import TimerResult
from forebay.operators.failures import failing_as_airflow
from forebay.operators.runs.airflow_runs import ACTIVE_STATES, latest_before, runs_of
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator
from forebay.operators.triggers.window_over import WindowOverTrigger
from forebay.system.clock import utc_now


class TimerOperator(StageOperator):
    """Waits for the end of the window and checks whether it is already trained.

    If it is, there is nothing to do: the tasks after it are skipped, and the run ends green within
    seconds. Clearing the timer, or the conf `{"reprocess": true}`, trains the window again.
    So does the run that un-pausing makes, when windows before it are not trained.
    """

    stage = "timer"
    ui_color = "#e8e3d3"

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        now = utc_now()
        window = request.window
        left = (window.end - now).total_seconds()
        if left > self.grace_seconds:
            self.call(self.command(request), TimerResult)  # refuses one outside the dataset
        if now < window.start:
            raise UsageError(
                f"window {window.key} has not started: it starts at {window.start.isoformat()} and "
                "can run when it has ended"
            )
        if left > 0:
            self.log.info("window %s: not over, it ends at %s", window.key, window.end.isoformat())
        if left > self.grace_seconds:
            trigger = WindowOverTrigger(until=window.end.timestamp())
            self.defer_until(trigger, then=self.window_over, seconds=left)
        self.pause(left)
        return self._look(request, context)

    def window_over(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        with failing_as_airflow():
            return self._look(self.request(context), context)

    def _look(self, request: StageRequest, context: Context) -> dict[str, Any]:
        options = ["--again"] if request.again else []
        result = self.call(self.command(request, *options), TimerResult)
        said = result.model_dump(mode="json")
        if result.state == "open":
            early = self._too_early(request) if request.scheduled and not request.again else ""
            if not early:
                return said
            said["reason"] = early
            self.log.warning("window %s: skipped. %s", result.window, early)
        # In Airflow skipping is an exception, so the result has to be pushed.
        context["ti"].xcom_push(key="return_value", value=said)
        raise DownstreamTasksSkipped(tasks=sorted(self.get_flat_relative_ids(upstream=False)))

    def _too_early(self, request: StageRequest) -> str:
        """Why the run that un-pausing made trains nothing, when other windows come before it.

        Scheduled runs after it are not skipped: they fail until somebody has filled the gap.
        """
        window, before = request.window, latest_before(request.dag_id, request.window)
        in_schedule = before is not None and before.run_type == "scheduled"
        if in_schedule or runs_of(request.dag_id, self.grid.before(window), self.grid):
            return ""
        gap = gap_before(ModelChain(self.home, self.pipeline, self.line), self.grid, window)
        if gap or before is None or before.state not in ACTIVE_STATES:
            return gap
        return (
            f"run {before.run_id} has not ended, and the line begins with its window: after that, "
            "create a backfill of the windows from there to this one"
        )
