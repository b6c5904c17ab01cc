"""What the two tasks of a job share: submitting in turn, and ending what they own."""

from __future__ import annotations

import time
from abc import abstractmethod
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.errors import FencedError, ForebayError, NotReadyError
from forebay.executors.job import JobHandle
from forebay.executors.job_folder import JobFolder
from forebay.executors.job_owner import own
from forebay.executors.stage_results import SubmitResult
from forebay.executors.turn import Line, PreviousRun, decide
from forebay.operators.airflow_runs import runs_of, task_states
from forebay.operators.base import StageOperator
from forebay.operators.context import Asked
from forebay.operators.tasks import TRAINING_EXECUTORS
from forebay.operators.triggers.base import defer_timeout, earliest_event
from forebay.operators.triggers.turn import CHANGED, TurnTrigger
from forebay.operators.turn_files import TurnFiles
from forebay.operators.turn_taking import Outlook, TurnWait

if TYPE_CHECKING:
    from airflow.sdk import Context

    from forebay.config.base import Spec

# Turns come when another window has trained: a slot is not held for that.
_LOOK_SECONDS = 5.0
_PAUSE_SECONDS = 1.0


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
        self, asked: Asked, wait: TurnWait, *, claim: str, again: bool, carried: Spec
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
            ForebayError: when the stage fails.
        """
        looked: Outlook | None = None
        first: Outlook | None = None
        because = ""
        until = time.monotonic() + min(self.grace_seconds, _LOOK_SECONDS)
        while True:
            outlook = self._outlook(asked)
            first = first or outlook
            if outlook != looked:
                looked = outlook
                result = self._ask(asked, outlook, claim, again=again)
                if isinstance(result, SubmitResult) and result.state != "waiting":
                    return result
                because = self._say(asked, because, result)
            if time.time() >= wait.deadline:
                raise NotReadyError(
                    f"{because}; that was the longest wait (schedule.turn_wait): "
                    "clear this task to wait again"
                )
            if time.monotonic() >= until:
                if outlook.files["links"] != first.files["links"]:
                    wait = wait.woken({"state": CHANGED})  # no later change would wake it
                self._defer_for_turn(outlook, wait, carried)
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

    def _ask(
        self, asked: Asked, outlook: Outlook, claim: str, *, again: bool
    ) -> SubmitResult | str:
        """Submit, or the reason why there is no use in asking yet."""
        if outlook.previous is PreviousRun.ACTIVE:
            line = Line(before=outlook.before, trained=None, planned=None, gap="")
            return decide(asked.window.key, PreviousRun.ACTIVE, line).because
        options = ["--claim", claim, "--previous", str(outlook.previous)]
        return self._submit(asked, [*options, *(["--again"] if again else [])])

    def _submit(self, asked: Asked, options: list[str]) -> SubmitResult:
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

    def _outlook(self, asked: Asked) -> Outlook:
        before = self.grid.before(asked.window)
        runs = runs_of(asked.dag_id, before, self.grid)
        self.run_before = runs[0].run_id if runs else ""
        states = task_states(asked.dag_id, [run.run_id for run in runs], TRAINING_EXECUTORS)
        files = TurnFiles.of(str(self.home.root), self.pipeline, self.line, before.key)
        return Outlook(before.key, tuple(runs), states, files.seen())

    def _say(self, asked: Asked, said: str, result: SubmitResult | str) -> str:
        because = result if isinstance(result, str) else result.because
        if because != said and isinstance(result, str):
            self.log.info("window %s: waiting. %s", asked.window.key, because)
        return because

    def _defer_for_turn(self, outlook: Outlook, wait: TurnWait, carried: Spec) -> None:
        now = time.time()
        seconds = min(wait.next_look, max(0.0, wait.deadline - now))
        # While the window before has a turn to come, a line that is free is no news: each of ten
        # waiting windows would be woken by every job that ends.
        behind = outlook.previous is PreviousRun.ACTIVE
        seen = {"links": outlook.files["links"]} if behind else outlook.files
        trigger = TurnTrigger(
            home=str(self.home.root),
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
            kwargs=carried.model_copy(update={"wait": wait.longer()}).model_dump(mode="json"),
            timeout=defer_timeout(seconds),
        )
