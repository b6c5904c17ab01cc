"""Wakes a source's task when the source's data for the window is complete."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.stages.results import SourceResult
from forebay.home.paths import Home
from forebay.operators.stage_process import (
    StageCommand,
    StageOutput,
    environment,
    error_text,
    interpreter_missing,
)
from forebay.operators.triggers.base import WakingTrigger
from forebay.system.output.redaction import redacted
from forebay.system.processes.ends import KILLED, end_group

FIRST_LOOK_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
GROWTH = 1.6
LOOK_DEADLINE_SECONDS = 300.0
_OUTPUT_BYTES_MAX = 1 << 20
_REAP_SECONDS = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class ReadyTrigger(WakingTrigger):
    """Runs `forebay stage source … --ready` from time to time; each check is a short process.

    It fires when the data is complete, when the source's deadline has passed, and when a check
    fails: the task then checks itself, and fails with the reason.

    arguments, variables: as in `StageCommand`.
    """

    python: str
    arguments: list[str]
    home: str
    deadline: float
    variables: list[str] = field(default_factory=list)

    async def watch(self) -> dict[str, Any]:
        pause, said = FIRST_LOOK_SECONDS, ""
        while (left := self.deadline - time.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(pause * GROWTH, LONGEST_PAUSE_SECONDS)
            try:
                found = await self._look()
            except ForebayError as error:
                self.log.warning("%s", redacted(str(error)))
                return {"state": "failed"}
            if found.state == "listed":
                return {"state": "ready"}
            if found.reason != said:
                said = found.reason
                self.log.info("window %s: waiting. %s", found.window, said)
        return {"state": "deadline"}

    async def _look(self) -> SourceResult:
        command = StageCommand(self.python, "source", (*self.arguments, "--ready"), self.variables)
        output = await run_stage(command, Home(Path(self.home)), LOOK_DEADLINE_SECONDS)
        return output.result(command, SourceResult)


async def run_stage(command: StageCommand, home: Home, deadline_seconds: float) -> StageOutput:
    """Run a stage without blocking the event loop. The stage never outlives this call.

    Raises:
        ConfigError: when the interpreter cannot be started.
        InfrastructureError: when the stage has not ended by the deadline.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command.line,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(command, home),
            start_new_session=True,
        )
    except OSError as error:
        raise interpreter_missing(command.python, error) from error
    try:
        async with asyncio.timeout(deadline_seconds):
            printed, said = await process.communicate()
    except TimeoutError:
        raise InfrastructureError(
            f"`{command}` had not ended after {deadline_seconds:g} s and was stopped"
        ) from None
    finally:
        if process.returncode is None:
            end_group(process.pid, kill=True)
            await asyncio.wait_for(process.wait(), _REAP_SECONDS)
    lines = said.decode(errors="replace").splitlines()
    code = process.returncode if process.returncode is not None else KILLED
    return StageOutput(
        code, printed[:_OUTPUT_BYTES_MAX].decode(errors="replace"), error_text(lines)
    )
