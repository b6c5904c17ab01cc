"""Follows a job for a deferred task: its progress in the task's log, its end as the event."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection

from forebay.errors import ForebayError
from forebay.executors.job import job_rows
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.stored_jobs import EXPIRED_SECONDS, HeartbeatWatch, StoredJob
from forebay.home.paths import Home
from forebay.operators.job.job_end import cancel_job, not_cancelled
from forebay.operators.job.progress_line import ProgressLines
from forebay.operators.triggers.poll import News, PolledTrigger
from forebay.system.output.redaction import redacted

# Airflow ends a trigger's `on_kill` silently after 30 s.
_KILL_SECONDS = 28.0


@dataclass(kw_only=True, eq=False, repr=False)
class JobTrigger(PolledTrigger[str, StoredJob]):
    """Fires when the job has ended or is lost, or at the deadline.

    When the triggerer stops, the job goes on: another triggerer takes over. Only a user who marks
    or clears the deferred task ends the job, and only while no newer attempt owns it.

    `epoch` is the task's.
    """

    at_deadline = "deadline"

    job_id: str
    epoch: int
    _lines: ProgressLines = field(init=False, default_factory=ProgressLines)
    _without_supervisor: str = field(init=False, default="")
    _heartbeat: HeartbeatWatch = field(init=False, default_factory=HeartbeatWatch)

    @property
    def subject(self) -> str:
        return f"job {self.job_id}"

    @property
    def key(self) -> str:
        return self.job_id

    @classmethod
    def read_all(
        cls, connection: Connection, home: Home, keys: Collection[str]
    ) -> Mapping[str, StoredJob]:
        found = job_rows.find_all(connection, keys)
        return {job_id: StoredJob(home, row) for job_id, row in found.items()}

    def judge(self, found: StoredJob) -> News | None:
        """The end of the job, or a line about its progress if one is due."""
        if not found.row.is_active:
            return News(event={"state": found.row.state})
        if self._is_lost(found):
            return News(event={"state": "lost"})
        line = self._lines.due(found)
        return None if line is None else News(line)

    def _is_lost(self, job: StoredJob) -> bool:
        """Whether the job has no supervisor: two checks found none, and its row has not changed.

        For a job on another host only the heartbeat can be seen.
        """
        if self._heartbeat.silent_seconds(job) >= EXPIRED_SECONDS:
            return True
        before = self._without_supervisor
        supervised = not job.is_here or job.host.is_held(job.job_id)
        self._without_supervisor = "" if supervised else job.row.document
        return before != "" and before == self._without_supervisor

    async def on_kill(self) -> None:
        handle = JobHandle(Home(Path(self.home)), self.job_id, self.epoch)
        cancelling = asyncio.to_thread(cancel_job, handle, self._say)
        try:
            await asyncio.wait_for(cancelling, _KILL_SECONDS)
        except ForebayError as error:
            self.log.error("%s", redacted(str(error)))
        except OSError as error:  # including the timeout
            reason = redacted(str(error)) or "no answer yet"
            self.log.error("%s", not_cancelled(self.job_id, reason))

    def _say(self, text: str) -> None:
        self.log.info("%s", redacted(text))
