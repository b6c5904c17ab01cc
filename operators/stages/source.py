"""One task for each source: list the window's data, in one scan with other waiting windows."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any, NoReturn

from airflow.sdk import Context

from forebay.datatasks.plans.listing_rows import listed_for
from forebay.errors import InfrastructureError
from forebay.executors.stages.results import RequestedWindow, SourceResult
from forebay.operators.runs.airflow_runs import FINISHED_STATES, active_runs_near, task_states
from forebay.operators.runs.stage_request import StageRequest, pass_name, run_name
from forebay.operators.stages.base import StageOperator
from forebay.operators.triggers.ready import GROWTH, ReadyTrigger
from forebay.system.instants import INSTANT_FORMAT
from forebay.system.output.counted import counted

_FIRST_PAUSE_SECONDS = 5.0
# An argument may have 128 KiB on Linux; with many long run ids the list is cut.
_ASKED_BYTES_MAX = 100_000


class SourceOperator(StageOperator):
    """Finds the data tasks of one source for the window.

    The first of many waiting runs scans the storage for all of them: it tells the stage which other
    windows are currently requested, and their tasks find the result in the ledger.
    While the data is incomplete the task waits, deferred and without a slot, at most until the
    source's own deadline, and then ends as the source's policy says.

    Args:
        source: name of the source use.
        windows_around: how many windows before and after may share the scan.
        **stage: as for every stage.
    """

    stage = "source"
    ui_color = "#d5e8d4"

    def __init__(self, *, source: str, windows_around: int = 400, **stage: Any) -> None:
        super().__init__(**stage)
        self.source = source
        self.windows_around = windows_around

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:  # noqa: ARG002
        grace_ends = time.monotonic() + self.grace_seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            result = self._list(request)
            if result.state == "listed":
                return result.model_dump(mode="json")
            if result.deadline is None:
                raise InfrastructureError(
                    f"source {self.source} is waiting for window {result.window} without a deadline"
                )
            left = (result.deadline - datetime.now(result.deadline.tzinfo)).total_seconds()
            if time.monotonic() + min(pause, left) > grace_ends:
                self._defer(request, result.deadline.timestamp(), left)
            self.pause(max(0.0, min(pause, left)))
            pause *= GROWTH

    def ready(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Try again: the data is complete, the deadline has passed, or a check has failed."""
        self.log.info("woken: %s", event["state"])
        return self.execute(context)

    def _defer(self, request: StageRequest, deadline: float, left: float) -> NoReturn:
        command = self.command(request, *self._asking(request))
        trigger = ReadyTrigger(
            python=command.python,
            arguments=list(command.arguments),
            home=str(self.home.root),
            deadline=deadline,
            variables=list(command.variables),
        )
        self.defer_until(trigger, then=self.ready, seconds=left)

    def _list(self, request: StageRequest) -> SourceResult:
        options = self._asking(request)
        found = listed_for(self.home, self.pipeline, self.source, request.window.key)
        if found != request.asked_by and (others := self._others(request)):
            options += ["--asked", others]
        return self.call(self.command(request, *options), SourceResult)

    def _asking(self, request: StageRequest) -> list[str]:
        options = [self.source, "--asked-by", request.asked_by]
        if request.since is not None:
            options += ["--since", request.since.strftime(INSTANT_FORMAT)]
        return options

    def _others(self, request: StageRequest) -> str:
        """Other windows whose runs wait for this source, nearest first, as JSON."""
        runs = active_runs_near(request.dag_id, request.window, self.grid, self.windows_around)
        runs = [run for run in runs if run.window.key != request.window.key]
        states = task_states(request.dag_id, [run.run_id for run in runs], request.task_id)
        waiting = {
            run.window: pass_name(run_name(request.dag_id, run.run_id), run.clear_number)
            for run in runs
            if states.get(run.run_id) not in FINISHED_STATES
        }
        near = sorted(waiting, key=lambda window: abs(window.start - request.window.start))
        kept: list[dict[str, str]] = []
        size = 0
        for window in near:
            one = RequestedWindow(window=window.key, asked_by=waiting[window]).model_dump()
            size += len(json.dumps(one).encode()) + len(", ")
            if size > _ASKED_BYTES_MAX:
                break
            kept.append(one)
        if kept:
            others = counted(len(kept), "other window")
            self.log.info("waiting for a plan, too: %s; one scan serves all", others)
        return json.dumps(kept) if kept else ""
