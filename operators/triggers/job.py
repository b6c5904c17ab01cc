"""Follows a job for a deferred task: its progress in the task's log, its end as the event."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from forebay.errors import FencedError, ForebayError, InfrastructureError
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.request import JobStatus
from forebay.home.paths import Home
from forebay.operators.job.progress_line import ProgressLines
from forebay.operators.triggers.base import WakingTrigger

LOOK_SECONDS = 1.0
# A look may wait long for a database that is away, and must not fill the triggerer with threads.
_THREADS_MAX = 4


class JobTrigger(WakingTrigger):
    """Fires when the job has ended or is lost, or at the deadline.

    Ends of the triggerer leave the job alone: another one takes over. Only a person who marks or
    clears the deferred task ends it, and only while no newer attempt owns it.
    """

    fields = ("home", "job_id", "epoch", "deadline")

    def __init__(
        self,
        *,
        home: str,
        job_id: str,
        epoch: int,
        deadline: float,
        not_before: float | None = None,
    ) -> None:
        """`epoch` is the task's; `deadline` as `time.time` counts."""
        super().__init__(not_before=not_before)
        self.home = home
        self.job_id = job_id
        self.epoch = epoch
        self.deadline = deadline

    async def watch(self) -> dict[str, Any]:
        """Look every second, in a thread: a database that does not answer is waited for."""
        handle, lines = self._handle(), ProgressLines()
        is_away = False
        while time.time() < self.deadline:
            try:
                status, line = await _in_thread(handle, lines)
            except InfrastructureError as error:
                if not is_away:
                    self.log.warning("job %s cannot be read now, waiting: %s", self.job_id, error)
                is_away = True
                await asyncio.sleep(LOOK_SECONDS)
                continue
            except (ForebayError, OSError) as error:
                self.log.warning("job %s cannot be read: %s", self.job_id, error)
                return {"state": "unreadable"}
            if is_away:
                self.log.info("job %s can be read again", self.job_id)
            is_away = False
            if status.ended or status.state == "lost":
                return {"state": status.state}
            if line is not None:
                self.log.info("%s", line)
            await asyncio.sleep(LOOK_SECONDS)
        return {"state": "deadline"}

    async def on_kill(self) -> None:
        """Cancel the job, unless it has a newer owner."""
        try:
            await asyncio.to_thread(self._handle().cancel)
            self.log.info("job %s is cancelled", self.job_id)
        except FencedError as error:
            self.log.info("%s", error)

    def _handle(self) -> JobHandle:
        return JobHandle(Home(Path(self.home)), self.job_id, self.epoch)


async def _in_thread(handle: JobHandle, lines: ProgressLines) -> tuple[JobStatus, str | None]:
    return await asyncio.get_running_loop().run_in_executor(_threads(), _look, handle, lines)


def _look(handle: JobHandle, lines: ProgressLines) -> tuple[JobStatus, str | None]:
    """The state of the job, and the line about its progress when it is time for one."""
    job = handle.look()
    return job.status, lines.due(job)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="forebay-job")
