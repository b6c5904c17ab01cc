"""What the two tasks of a job share: submitting in turn, and ending what they own."""

from __future__ import annotations

import time
from abc import abstractmethod
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.errors import ConfigError, FencedError, ForebayError, NotReadyError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.owner import own
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.turn import Line, PreviousRun, behind_failed, decide
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.base import StageOperator
from forebay.operators.triggers.base import defer_timeout, earliest_event
from forebay.operators.triggers.turn import CHANGED, TurnTrigger
from forebay.operators.turn.previous_run import BLOCKED_LOOKS_MAX, Outlook, TurnWait
from forebay.operators.turn.windows_ahead import WindowsAhead

if TYPE_CHECKING:
    from airflow.sdk import Context

    from forebay.system.message import Message

# Turns come when another window has trained: a slot is not held for that.
_LOOK_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
# What is news to a window behind one that has a turn to come itself.
_NEWS = {"links", "failed_at"}


class JobOperator(StageOperator):
    """A task that may submit the job of its window, and owns it until it hands it on.

    Args:
        turn_wait_seconds: longest wait for the window before and for the line.
        **stage: as for every stage.
    """

    # The run of the window before, for the link to it.
    run_before = ""
    _handle: JobHandle | None = None

    def __init__(self, *, turn_wait_seconds: float = 86_400.0, **stage: Any) -> None:
        super().__init__(**stage)
        self.turn_wait_seconds = turn_wait_seconds

    @abstractmethod
    def turn_came(self, context: Context, event: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Go on behind a wait for the turn, with what was carried through it."""

    def submit_in_turn(
        self, asked: StageRequest, wait: TurnWait, *, claim: str, again: bool, carried: Message
    ) -> SubmitResult:
        """Submit the window's job when it is its turn; wait for that deferred.

        Args:
            asked: what the task is asked for.
            wait: how long it has waited, and may.
            claim: what this submission is recognised by; the same claim never trains twice.
            again: whether a trained window is trained once more.
            carried: what `turn_came` gets; its field `wait` is the wait that goes on.

        Raises:
            NotReadyError: at the deadline.
            ConfigError: when the wait would have no end: behind a window whose run failed, or
                one whose run finds no place among those that may be active.
            ForebayError: when the stage fails.
        """
        ahead = self._ahead(asked)
        looked: Outlook | None = None
        first: Outlook | None = None
        reason = ""
        until = time.monotonic() + min(self.grace_seconds, _LOOK_SECONDS)
        while True:
            outlook = ahead.outlook()
            self.run_before = outlook.run_id
            first = first or outlook
            if outlook != looked:
                looked = outlook
                result = self._ask(asked, outlook, claim, again=again)
                if isinstance(result, SubmitResult) and result.state != "waiting":
                    return result
                reason = self._say(asked, reason, result)
            self._refuse_blocked(asked, outlook, wait)
            if time.time() >= wait.deadline:
                raise NotReadyError(
                    f"{reason}; that was the longest wait (schedule.turn_wait): "
                    "clear this task to wait again"
                )
            if time.monotonic() >= until:
                if outlook.files.model_dump(include=_NEWS) != first.files.model_dump(include=_NEWS):
                    wait = wait.woken({"state": CHANGED})  # no later change would wake it
                self._defer_for_turn(asked, outlook, wait, carried)
            self.pause(_PAUSE_SECONDS)

    def cancel(self) -> None:
        """End the job that this task owns; a newer owner keeps it."""
        if self._handle is None:
            return
        try:
            self._handle.cancel()
            self.log.info("job %s is cancelled", self._handle.job_id)
        except FencedError as error:
            self.log.info("%s", error)

    def on_kill(self) -> None:
        """End the stage and the job."""
        super().on_kill()
        self.cancel()

    def logs(self, handle: JobHandle) -> str:
        """Where the job's processes write."""
        return str(handle.folder.path / "logs")

    def _ahead(self, asked: StageRequest) -> WindowsAhead:
        return WindowsAhead(asked, self.grid, self.home, self.pipeline, self.line)

    def _ask(
        self, asked: StageRequest, outlook: Outlook, claim: str, *, again: bool
    ) -> SubmitResult | str:
        """Submit, or the reason why there is no use in asking yet."""
        if outlook.previous is PreviousRun.ACTIVE:
            failed = self._ahead(asked).failed(outlook)
            if failed:
                raise ConfigError(behind_failed(asked.window.key, failed))
            line = Line(before=outlook.before, trained=None, planned=None, gap="")
            return decide(asked.window.key, PreviousRun.ACTIVE, line).reason
        options = ["--claim", claim, "--previous", str(outlook.previous)]
        return self._submit(asked, [*options, *(["--again"] if again else [])])

    def _submit(self, asked: StageRequest, options: list[str]) -> SubmitResult:
        since = datetime.now(UTC)
        try:
            result = self.call(self.command(asked, *options, stage="submit"), SubmitResult)
        except ForebayError:
            if self._killed:
                self._cancel_unheard(asked.window.key, since)
            raise
        if result.state == "submitted":
            self._handle = JobHandle(self.home, result.job_id, result.epoch)
            own(self._handle, asked.run)
            if self._killed:
                self.cancel()
            self.refuse_killed()
            self.log.info(
                "job %s (epoch %d), its logs: %s",
                result.job_id,
                result.epoch,
                self.logs(self._handle),
            )
        return result

    def _cancel_unheard(self, window: str, since: datetime) -> None:
        """A submission was ended before it could tell its job: end what it has started."""
        name = f"{self.pipeline}-{self.line}-{window}-g"
        for path in self.home.job(name).parent.glob(f"{name}*"):
            folder = JobFolder(path)
            status = folder.stored_status()
            if status is not None and not status.ended and status.submitted_at >= since:
                self._handle = JobHandle(self.home, path.name, folder.epoch())
                self.cancel()

    def _refuse_blocked(self, asked: StageRequest, outlook: Outlook, wait: TurnWait) -> None:
        if outlook.blocked and wait.blocked_looks >= BLOCKED_LOOKS_MAX:
            raise ConfigError(
                f"window {asked.window.key} waits for window {outlook.before}, whose run is queued "
                "and cannot start: all runs that may be active at a time are of later windows, "
                "which wait for it (a backfill that runs backwards?). This run ends to make room: "
                f"clear it once window {outlook.before} is trained"
            )

    def _say(self, asked: StageRequest, said: str, result: SubmitResult | str) -> str:
        reason = result if isinstance(result, str) else result.reason
        if reason != said and isinstance(result, str):
            self.log.info("window %s: waiting. %s", asked.window.key, reason)
        return reason

    def _defer_for_turn(
        self, asked: StageRequest, outlook: Outlook, wait: TurnWait, carried: Message
    ) -> None:
        now = time.time()
        seconds = min(wait.next_look, max(0.0, wait.deadline - now))
        # While the window before has a turn to come, a line that is free is no news: each of ten
        # waiting windows would be woken by every job that ends.
        behind = outlook.previous is PreviousRun.ACTIVE
        seen = outlook.files.model_dump(mode="json", include=_NEWS if behind else None)
        trigger = TurnTrigger(
            home=str(self.home.root),
            dag_id=asked.dag_id,
            pipeline=self.pipeline,
            line=self.line,
            before=outlook.before,
            seen=seen,
            until=now + seconds,
            not_before=earliest_event(),
        )
        self.defer(
            trigger=trigger,
            method_name=self.turn_came.__name__,
            kwargs=carried.model_copy(
                update={"wait": wait.longer(blocked=outlook.blocked)}
            ).model_dump(mode="json"),
            timeout=defer_timeout(seconds),
        )
