"""The first task: has the window ended, and is there anything to do?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import DownstreamTasksSkipped

from forebay.errors import UsageError
from forebay.executors.stages.results import TimerResult
from forebay.operators.failures import failing_as_airflow
from forebay.operators.runs.stage_request import REPROCESS, StageRequest
from forebay.operators.stages.base import StageOperator
from forebay.operators.triggers.window_over import WindowOverTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

_CONF = json.dumps({REPROCESS: True})
AGAIN = f"to train it again, clear this run, or trigger it with the conf {_CONF}"


class TimerOperator(StageOperator):
    """Waits for the end of the window and checks whether it is already trained.

    If it is, there is nothing to do: the tasks after it are skipped, and the run ends green within
    seconds. Clearing the timer, or the conf `{"reprocess": true}`, trains the window again.
    """

    stage = "timer"
    ui_color = "#e8e3d3"

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        """Wait until the window has ended, then check."""
        now = datetime.now(UTC)
        window = request.window
        if now < window.start:
            raise UsageError(
                f"window {window.key} has not started: it starts at {window.start.isoformat()} and "
                "can run when it has ended"
            )
        left = (window.end - now).total_seconds()
        if left > 0:
            self.log.info("window %s: not over, it ends at %s", window.key, window.end.isoformat())
        if left > self.grace_seconds:
            trigger = WindowOverTrigger(until=window.end.timestamp())
            self.defer_until(trigger, then=self.window_over, seconds=left)
        self.pause(left)
        return self._look(request, context)

    def window_over(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Continue after the deferral."""
        with failing_as_airflow():
            return self._look(self.request(context), context)

    def _look(self, request: StageRequest, context: Context) -> dict[str, Any]:
        options = ["--again"] if request.again else []
        result = self.call(self.command(request, *options), TimerResult)
        if result.state == "open":
            return result.model_dump(mode="json")
        said = result.model_dump(mode="json") | {"next": AGAIN}
        self.log.info(
            "window %s: already trained in generation %s; %s",
            result.window,
            result.generation,
            AGAIN,
        )
        # In Airflow skipping is an exception, so the result has to be pushed.
        context["ti"].xcom_push(key="return_value", value=said)
        raise DownstreamTasksSkipped(tasks=sorted(self.get_flat_relative_ids(upstream=False)))
