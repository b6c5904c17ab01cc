"""Submits the window's job; the task succeeds once the job's data executors serve."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import Context

from forebay.errors import InfrastructureError
from forebay.executors.job.handle import JobHandle
from forebay.executors.stages.results import SubmitResult
from forebay.operators.failures import failing_as_airflow
from forebay.operators.job.job_end import raise_for_end
from forebay.operators.links import TrainingLink, WindowBeforeLink
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.runs.xcoms import SubmittedJob
from forebay.operators.stages.job_operator import JobOperator
from forebay.operators.turn.wait import TurnWait
from forebay.system.message import Message

_POLL_SECONDS = 0.1


class _Carried(Message):
    wait: TurnWait


class DataExecutorsOperator(JobOperator):
    """Submits the window's job in turn, and hands it over when its data executors serve.

    Args:
        executors: how many data executors the job has.
        **job: as for every task of a job.
    """

    operator_extra_links = (TrainingLink(), WindowBeforeLink())
    is_alone = True

    def __init__(self, *, executors: int = 1, **job: Any) -> None:
        super().__init__(**job)
        self.executors = executors

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        first = context["ti"].get_first_reschedule_date(context)
        return self._start(request, TurnWait.begun(first, self.turn_wait_seconds))

    def turn_came(self, context: Context, event: dict[str, Any], **carried: Any) -> dict[str, Any]:
        with failing_as_airflow():
            wait = _Carried.model_validate(carried).wait.woken(event)
            return self._start(self.request(context), wait)

    def _start(self, request: StageRequest, wait: TurnWait) -> dict[str, Any]:
        result = self.submit_in_turn(
            request, wait, claim=request.claim, again=request.again, carried=_Carried(wait=wait)
        )
        if result.state != "trained":
            self._await_registered(JobHandle(self.home, result.job_id, result.epoch))
        return self._hand_over(request, result)

    def _await_registered(self, handle: JobHandle) -> None:
        """Wait until the data executors serve, or the job has already succeeded."""
        until = time.monotonic() + self.stage_seconds
        while time.monotonic() < until:
            self.refuse_killed()
            status = handle.status()
            if status.state == "succeeded" or (
                status.state == "running" and status.registered >= self.executors
            ):
                serve = "executor serves" if self.executors == 1 else "executors serve"
                job = f"job {handle.job_id} (epoch {handle.epoch})"
                self.log.info("%s: %d data %s", job, self.executors, serve)
                return
            raise_for_end(status, self.logs(handle))
            self.pause(_POLL_SECONDS)
        self.cancel()
        raise InfrastructureError(
            f"the data executors of job {handle.job_id} did not register within "
            f"{self.stage_seconds:g} s: see {self.logs(handle)}"
        )

    def _hand_over(self, request: StageRequest, result: SubmitResult) -> dict[str, Any]:
        # From here on training_executors owns the job: this task must no longer end it.
        self._handle = None
        return SubmittedJob(
            window=request.window.key,
            generation=result.generation,
            job_id=result.job_id if result.state == "submitted" else "",
            epoch=result.epoch,
            asked_by=request.asked_by,
            claim=request.claim,
        ).model_dump(mode="json")
