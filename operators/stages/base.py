"""StageOperator: what all tasks of a pipeline's DAG share."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

from airflow.sdk import BaseOperator, Context
from airflow.sdk.log import mask_secret

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.errors import InfrastructureError
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.operators.failures import failing_as_airflow
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.settings import home, interpreter
from forebay.operators.stage_process import StageCommand, StageProcess, StageResult
from forebay.operators.triggers.base import WakingTrigger, defer_timeout
from forebay.system.message import Message
from forebay.system.output.redaction import hidden_values, redacted

DEFAULT_GRACE_SECONDS = 60.0
DEFAULT_STAGE_SECONDS = 3600.0
_PAUSE_SECONDS = 0.2
# How lines of a stage begin that are warnings.
WARNING_MARK = "WARNING: "


class StageOperator(BaseOperator):
    """One stage of one window. It starts `forebay stage`, logs its output, and ends as it does.

    Args:
        pipeline: name of the pipeline.
        config: folder with `sources/` and `pipelines/`, as an absolute path.
        size, timezone: the pipeline's windows, as in its dataset.
        line: the model line.
        python: interpreter of the stage; None for Airflow's option `[forebay] python`, else ours.
        grace_seconds: how long the task checks itself, holding a slot, before it defers.
        stage_seconds: longest time that one call of a stage may take.
        variables: what stages inherit from the worker's environment in addition to what each of
            them needs: names, and prefixes such as ACME_*.
        **airflow: what every Airflow operator takes (`task_id`, `retries`, `pool`, …).
    """

    template_fields: Sequence[str] = ("config", "line", "python", "variables")
    ui_fgcolor = "#1b1b1b"
    # The stage that `command` calls; not set for a task that calls none.
    stage: ClassVar[str]

    _process: StageProcess | None = None
    _killed = False

    def __init__(
        self,
        *,
        pipeline: str,
        config: str,
        size: WindowSize | str = WindowSize.DAY,
        timezone: str = "UTC",
        line: str = DEFAULT_LINE,
        python: str | None = None,
        grace_seconds: float = DEFAULT_GRACE_SECONDS,
        stage_seconds: float = DEFAULT_STAGE_SECONDS,
        variables: Sequence[str] = (),
        **airflow: Any,
    ) -> None:
        super().__init__(**airflow)
        self.pipeline = pipeline
        self.config = config
        self.size = str(WindowSize(size))
        self.timezone = timezone
        self.line = line
        self.python = python
        self.grace_seconds = grace_seconds
        self.stage_seconds = stage_seconds
        self.variables = list(variables)

    @abstractmethod
    def work(self, request: StageRequest, context: Context) -> dict[str, Any]:
        """Do the stage's work; the return value is the task's XCom."""

    def execute(self, context: Context) -> dict[str, Any]:
        # Airflow does not know the secrets of our environment and YAML.
        for value in hidden_values():
            mask_secret(value)
        with failing_as_airflow():
            return self.work(self.request(context), context)

    def request(self, context: Context) -> StageRequest:
        return StageRequest.of(context, self.grid)

    @property
    def grid(self) -> WindowGrid:
        return WindowGrid(WindowSize(self.size), self.timezone)

    @property
    def home(self) -> Home:
        return home()

    def command(self, request: StageRequest, *options: str) -> StageCommand:
        named = (self.pipeline, request.window.key, *options)
        where = ("--config", self.config, "--line", self.line)
        return StageCommand(interpreter(self.python), self.stage, (*named, *where), self.variables)

    def call(self, command: StageCommand, model: type[StageResult]) -> StageResult:
        """Run a stage to its end; its lines go to the log of this task.

        Raises:
            ForebayError: by the stage's exit code.
        """
        self.log.info("%s", command)
        self._process = StageProcess(command, self.home, self._heard)
        try:
            return self._process.wait(self.stage_seconds).result(command, model)
        finally:
            self._process = None

    def defer_until(
        self,
        trigger: WakingTrigger,
        *,
        then: Callable[..., dict[str, Any]],
        seconds: float,
        carried: Message | None = None,
    ) -> NoReturn:
        """Give the slot back until the trigger fires, after that many seconds in any case.

        `then`, a method of this operator, continues with the event and what is `carried`.
        """
        self.defer(
            trigger=trigger,
            method_name=then.__name__,
            kwargs=None if carried is None else carried.model_dump(mode="json"),
            timeout=defer_timeout(seconds),
        )

    def pause(self, seconds: float) -> None:
        """Sleep, holding the slot.

        Raises:
            InfrastructureError: when the task must end.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _PAUSE_SECONDS))
            self.refuse_killed()

    def refuse_killed(self) -> None:
        """Raise an InfrastructureError if the task must end."""
        if self._killed:
            raise InfrastructureError("the task was killed")

    def on_kill(self) -> None:
        """The task must end now: marked by a user, out of time, or its worker is stopping."""
        self._killed = True
        if self._process is not None:
            self._process.end()

    def _heard(self, line: str) -> None:
        say = self.log.warning if line.startswith(WARNING_MARK) else self.log.info
        say("%s", redacted(line.removeprefix(WARNING_MARK)))
