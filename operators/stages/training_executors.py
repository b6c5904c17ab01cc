"""Follows the training job to its end, deferred after the grace period."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import Context

from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.host import host_of
from forebay.executors.job.request import JobStatus
from forebay.executors.job.submit import attach
from forebay.executors.model_line.chain import ModelChain
from forebay.operators.failures import failing_as_airflow
from forebay.operators.job.job_end import raise_for_end
from forebay.operators.job.progress_line import ProgressLines
from forebay.operators.links import MetricsLink, WindowBeforeLink
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.runs.task_ids import DATA_EXECUTORS
from forebay.operators.runs.xcoms import SubmittedJob, TrainedWindow, left_by
from forebay.operators.stages.job_operator import JobOperator
from forebay.operators.triggers.job import JobTrigger
from forebay.operators.turn.wait import TurnWait
from forebay.system.message import Message

RESUBMISSIONS_MAX = 3
_POLL_SECONDS = 1.0


class _Attempt(Message):
    """What one attempt at the task knows and carries through its deferrals.

    claim, again: for a submission, if one is needed. resubmitted: how many there were.
    wait: for the line. deadline: when the training must end, as given by `time.time`.
    """

    claim: str
    again: bool
    generation: int = 0
    job_id: str = ""
    epoch: int = 0
    resubmitted: int = 0
    wait: TurnWait
    deadline: float


class TrainingExecutorsOperator(JobOperator):
    """Takes the job over from data_executors and ends as the job does.

    A retry attaches again, with a higher epoch. So does another run of the same window: both then
    follow the same job to its end, but only the newest owner can end it. A job that was lost, or
    that failed for reasons another attempt may fix, is submitted again and continues from its
    newest checkpoint. If this task alone is cleared, without data_executors, it trains the same
    data tasks as a new generation.

    Args:
        train_seconds: longest time that training the window may take.
        **job: as for every task of a job.
    """

    operator_extra_links = (MetricsLink(), WindowBeforeLink())

    def __init__(self, *, train_seconds: float = 86_400.0, **job: Any) -> None:
        super().__init__(**job)
        self.train_seconds = train_seconds

    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        left = left_by(DATA_EXECUTORS, SubmittedJob, context)
        now = time.time()
        alone = request.clear_count > 0 and left.asked_by != request.asked_by
        attempt = _Attempt(
            claim=request.claim if alone else left.claim,
            again=alone,
            generation=left.generation,
            wait=TurnWait(deadline=now + self.turn_wait_seconds),
            deadline=now + self.train_seconds,
        )
        if alone:
            again = "only this task was cleared, so the window is trained again"
            self.log.info("window %s: %s", request.window.key, again)
            return self._submit_and_follow(request, attempt)
        if not left.job_id:
            return self._summary(request, left.generation, None)
        self._handle = attach(self.home, left.job_id, request.run)
        self.log.info("logs: %s", self.logs(self._handle))
        job = f"job {left.job_id} (epoch {self._handle.epoch})"
        self.log.info("window %s: attached to %s", request.window.key, job)
        update = {"job_id": left.job_id, "epoch": self._handle.epoch}
        return self._follow(request, attempt.model_copy(update=update), self._handle, attached=True)

    def turn_came(self, context: Context, event: dict[str, Any], **carried: Any) -> dict[str, Any]:
        with failing_as_airflow():
            attempt = _Attempt.model_validate(carried)
            update = {"wait": attempt.wait.woken(event)}
            return self._submit_and_follow(self.request(context), attempt.model_copy(update=update))

    def followed(self, context: Context, event: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Continue after a deferral: the job has ended, or has reached its deadline."""
        with failing_as_airflow():
            attempt = _Attempt.model_validate(carried)
            self._handle = JobHandle(self.home, attempt.job_id, attempt.epoch)
            request, job = self.request(context), self._handle.look()
            if event["state"] == "lost" and job.row.is_active and not job.is_here:
                # Only a watcher sees that over time; a new submission would have to watch again.
                lost = job.status.model_copy(update={"state": "lost"})
                return self._resubmit(request, attempt, lost)
            return self._follow(request, attempt, self._handle)

    def _submit_and_follow(self, request: StageRequest, attempt: _Attempt) -> dict[str, Any]:
        result = self.submit_in_turn(
            request, attempt.wait, claim=attempt.claim, again=attempt.again, carried=attempt
        )
        if result.state == "trained" or self._handle is None:
            return self._summary(request, result.generation, None)
        update = {
            "job_id": result.job_id,
            "epoch": result.epoch,
            "generation": result.generation,
            # Waiting for the line does not count as training time.
            "deadline": time.time() + self.train_seconds,
        }
        return self._follow(request, attempt.model_copy(update=update), self._handle)

    def _follow(
        self, request: StageRequest, attempt: _Attempt, handle: JobHandle, *, attached: bool = False
    ) -> dict[str, Any]:
        """Poll within the grace period, then defer.

        attached: whether the first look may find an end from before this attempt.
        """
        lines = ProgressLines()
        until = time.monotonic() + self.grace_seconds
        while True:
            job = handle.look()
            status = job.status
            if status.state == "succeeded":
                return self._summary(request, attempt.generation, status)
            if _worth_submitting_again(status, attached=attached):
                return self._resubmit(request, attempt, status)
            raise_for_end(status, self.logs(handle))
            attached = False
            self.refuse_killed()
            line = lines.due(job)
            if line is not None:
                self.log.info("%s", line)
            self._refuse_late(attempt, handle)
            if time.monotonic() >= until:
                trigger = JobTrigger(
                    home=str(self.home.root),
                    job_id=attempt.job_id,
                    epoch=attempt.epoch,
                    deadline=attempt.deadline,
                )
                left = attempt.deadline - time.time()
                self.defer_until(trigger, then=self.followed, seconds=left, carried=attempt)
            self.pause(_POLL_SECONDS)

    def _resubmit(
        self, request: StageRequest, attempt: _Attempt, status: JobStatus
    ) -> dict[str, Any]:
        if attempt.resubmitted >= RESUBMISSIONS_MAX:
            raise InfrastructureError(
                f"logs: {host_of(self.home).logs(status.job_id)}\n"
                f"job {status.job_id} is {status.state} again, although this task has resubmitted "
                f"it {attempt.resubmitted} times: see its logs, then clear this task"
            )
        self.refuse_killed()
        lost = "window %s: job %s was %s: submitting it again, to continue from its checkpoint"
        self.log.info(lost, request.window.key, status.job_id, status.state)
        update = {"resubmitted": attempt.resubmitted + 1}
        return self._submit_and_follow(request, attempt.model_copy(update=update))

    def _refuse_late(self, attempt: _Attempt, handle: JobHandle) -> None:
        if time.time() < attempt.deadline:
            return
        self.cancel()
        raise ConfigError(
            f"logs: {self.logs(handle)}\njob {handle.job_id} was cancelled: the window was not "
            f"trained within {self.train_seconds:g} s (schedule.train_timeout). Raise that, or "
            "find out why it took so long, then clear this task"
        )

    def _summary(
        self, request: StageRequest, generation: int, status: JobStatus | None
    ) -> dict[str, Any]:
        """The trained window, from the model's own sums."""
        window = request.window.key
        link = ModelChain(self.home, self.pipeline, self.line).link(window, generation)
        if link is None:
            raise InfrastructureError(f"window {window} is not trained in generation {generation}")
        found = TrainedWindow(
            window=window,
            generation=generation,
            job_id=status.job_id if status is not None else "",
            rows={source: link.trained(source).rows for source in link.seen},
            steps=link.steps,
            seconds=_seconds(status),
        )
        rows = ", ".join(f"{name} {count:,}" for name, count in found.rows.items())
        trained = f"trained in generation {generation}: {rows or 'no'} rows, {link.steps} steps"
        self.log.info("window %s: %s, %g s", window, trained, found.seconds)
        return found.model_dump(mode="json")


def _worth_submitting_again(status: JobStatus, *, attached: bool) -> bool:
    """A lost job always is; one that ended before this attempt is if another try may fix it."""
    if status.state == "lost":
        return True
    if not attached:
        return False
    broken = status.state == "failed" and (
        status.error is None or status.error.exit_code == InfrastructureError.exit_code
    )
    return broken or status.state == "cancelled"


def _seconds(status: JobStatus | None) -> float:
    if status is None or status.started_at is None or status.ended_at is None:
        return 0.0
    return round((status.ended_at - status.started_at).total_seconds(), 3)
