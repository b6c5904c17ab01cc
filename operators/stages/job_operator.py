"""What the two tasks of a job share: submitting in turn, and ending what they own."""

from __future__ import annotations

import time
from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowRescheduleException

from forebay.errors import ForebayError
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.stored_jobs import window_jobs
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.turn import PreviousRun, decide
from forebay.operators.job.job_end import cancel_job
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator
from forebay.operators.triggers.turn import TurnTrigger
from forebay.operators.turn.previous_run import PreviousWindow, TurnObserver
from forebay.operators.turn.wait import CHANGED, FIRST_LOOK_SECONDS, TurnWait
from forebay.system.message import Message

# How long a task holds its slot: while the window before waits for its own turn, while its run is
# about to end or another job trains the line, and while the window before is trained.
_FAR_SECONDS, _LOOK_SECONDS, _NEAR_SECONDS = 1.0, 5.0, 30.0
_PAUSE_SECONDS = 0.25


class JobOperator(StageOperator):
    """A task that may submit the job of its window, and owns it until it hands it over.

    Args:
        turn_wait_seconds: longest wait for the previous window and for the line.
        **stage: as for every stage.
    """

    stage = "submit"
    ui_color = "#b1ddf0"
    # The run of the previous window, for the link to it.
    run_before = ""
    # Whether one task of the DAG runs or is deferred at a time, see `_leave`.
    is_alone = False
    _handle: JobHandle | None = None

    def __init__(self, *, turn_wait_seconds: float = 86_400.0, **stage: Any) -> None:
        super().__init__(**stage)
        self.turn_wait_seconds = turn_wait_seconds

    @abstractmethod
    def turn_came(self, context: Context, event: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Continue after waiting for the turn, with what was carried through the deferral."""

    def submit_in_turn(
        self, request: StageRequest, wait: TurnWait, *, claim: str, again: bool, carried: Message
    ) -> SubmitResult:
        """Submit the window's job when it is its turn; defer until then.

        claim: identifies this submission; the same claim never trains twice.
        again: whether to train a trained window again.
        carried: what `turn_came` gets; its field `wait` is the wait so far.

        Raises:
            NotReadyError: at the deadline.
            ConfigError: when the wait would never end: because the previous window's run failed,
                or has no free place among the runs that may be active.
            ForebayError: when the stage fails.
        """
        observer = TurnObserver(request, self.grid, self.home, self.pipeline, self.line)
        first = previous = observer.look()
        answer: str | None = None
        said = ""
        began = time.monotonic()
        while True:
            self.run_before = previous.run_id
            turn = decide(previous.situation(request.window.key, wait, answer))
            if turn.action == "go":
                # The stage asks about its neighbour, which this is not where that has no run.
                is_next = previous.key == self.grid.before(request.window).key
                state = previous.state if is_next else PreviousRun.NONE
                result = self._submit(request, claim, state, again=again)
                if result.state != "waiting":
                    return result
                answer = result.reason
                continue
            turn.require()
            if turn.reason != said and answer is None:  # an answer has already been logged
                self.log.info("%s", turn.reason)
            said = turn.reason
            if _news(previous) != _news(first):
                # The run before ends within seconds, and no change would wake a deferred task.
                wait, first, began = wait.woken({"state": CHANGED}), previous, time.monotonic()
            if time.monotonic() - began >= min(self.grace_seconds, _look_seconds(previous, wait)):
                self._leave(previous, wait)
                self._defer_for_turn(request, previous, wait, carried)
            self.pause(_PAUSE_SECONDS)
            seen = observer.look()
            if seen is not previous:
                previous, answer = seen, None

    def cancel(self) -> None:
        """End the job that this task owns; a newer owner keeps it."""
        if self._handle is not None:
            cancel_job(self._handle, self.log.info)

    def on_kill(self) -> None:
        super().on_kill()
        self.cancel()

    def logs(self, handle: JobHandle) -> str:
        return str(handle.logs)

    def _submit(
        self, request: StageRequest, claim: str, previous: PreviousRun, *, again: bool
    ) -> SubmitResult:
        named = ("--claim", claim, "--previous", str(previous), "--run", request.run)
        options = (*named, *(["--again"] if again else []))
        since = datetime.now(UTC)
        try:
            result = self.call(self.command(request, *options), SubmitResult)
        except ForebayError:
            if self._killed:
                self._cancel_unheard(request.window.key, since)
            raise
        if result.state == "submitted":
            self._handle = JobHandle(self.home, result.job_id, result.epoch)
            if self._killed:
                self.cancel()
            self.refuse_killed()
            self.log.info("logs: %s", self.logs(self._handle))
        return result

    def _cancel_unheard(self, window: str, since: datetime) -> None:
        """End a job whose submission was ended before it could report the job."""
        for job in window_jobs(self.home, self.pipeline, self.line, window):
            if not job.status.ended and job.status.submitted_at >= since:
                self._handle = JobHandle(self.home, job.job_id, job.row.epoch)
                self.cancel()

    def _leave(self, previous: PreviousWindow, wait: TurnWait) -> None:
        """Let others of the DAG have the one place, unless only this window's turn can be next.

        Airflow counts a deferred task like one that runs. So one that waits for a window which
        waits itself, for data or for a place among the runs, would keep out that window, and those
        that need neither. While the previous window is trained, nobody else could train.
        """
        if self.is_alone and previous.state is PreviousRun.ACTIVE and not previous.files.is_near:
            seconds = min(wait.away_seconds, max(1.0, wait.seconds_left))
            raise AirflowRescheduleException(datetime.now(UTC) + timedelta(seconds=seconds))

    def _defer_for_turn(
        self, request: StageRequest, previous: PreviousWindow, wait: TurnWait, carried: Message
    ) -> NoReturn:
        if previous.files.links and wait.next_look == FIRST_LOOK_SECONDS:
            wait = wait.woken({"state": CHANGED})  # perhaps it was trained before the first look
        seconds = min(wait.next_look, max(0.0, wait.seconds_left))
        # While the previous window is still waiting for its own turn, a free line does not matter:
        # every job that ends would wake each of ten waiting windows.
        active = previous.state is PreviousRun.ACTIVE
        seen = _news(previous) if active else previous.files.model_dump(mode="json")
        is_early = active and not previous.files.links and not previous.files.further
        trigger = TurnTrigger(
            home=str(self.home.root),
            dag_id=request.dag_id,
            pipeline=self.pipeline,
            line=self.line,
            before=previous.key,
            further=previous.further,
            seen=seen | ({"further": []} if is_early else {}),
            deadline=time.time() + seconds,
        )
        longer = wait.longer(blocked=previous.blocked)
        carried = carried.model_copy(update={"wait": longer})
        self.defer_until(trigger, then=self.turn_came, seconds=seconds, carried=carried)


def _news(previous: PreviousWindow) -> dict[str, Any]:
    """The fields that matter to a window while the previous one still waits for its own turn."""
    return previous.files.model_dump(mode="json", include={"links", "failed_at"})


def _look_seconds(previous: PreviousWindow, wait: TurnWait) -> float:
    """How long to look before deferring: a deferral takes ten seconds, and a slot is another's."""
    if previous.files.is_near:
        return _NEAR_SECONDS
    is_far = previous.state is PreviousRun.ACTIVE and not previous.files.links
    return _FAR_SECONDS if is_far and not wait.is_soon else _LOOK_SECONDS
