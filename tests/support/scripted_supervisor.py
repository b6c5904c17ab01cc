"""Supervisors that a test scripts, in this process, in place of those that `submit` starts.

All else is real: requests, rows, epochs and locks. Only `Popen` is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from forebay.executors.job import job_changes
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import State
from forebay.executors.job.stored_jobs import stored_job
from forebay.executors.roles.table import SUPERVISOR
from forebay.executors.supervisor.supervisor import supervisor_arguments
from forebay.home.database.open import database_of
from forebay.system.files.locks import FileLock


class ScriptedSupervisor:
    """A supervisor as others see it: it holds the lock of its job, and reports."""

    def __init__(self, command: Sequence[str]) -> None:
        job, descriptor = supervisor_arguments(list(command[-4:]))
        assert descriptor is not None
        self.interpreter = command[0]
        self.folder = JobFolder(job)
        # The submitter closes its own descriptor: the lock goes with this copy.
        lock = FileLock.inherited(self.folder.supervisor_lock, os.dup(descriptor))
        assert lock is not None
        lock.write(SUPERVISOR)
        self.request = self.folder.request()
        self._code: int | None = None
        self._lock = lock

    def report(self, state: State, **more: Any) -> None:
        """What the database says of the job from now on; the rest stays as it was reported."""
        home = self.folder.home
        before = stored_job(home, self.folder.job_id).row.status
        told = before.model_copy(update={"state": state, **more})
        database_of(home).transact(lambda rows: job_changes.report(rows, told, None))

    def run(self) -> None:
        self.report("running", started_at=datetime.now(UTC))

    def end(self, state: State, **more: Any) -> None:
        self.report(state, **more)
        self.die()

    def die(self) -> None:
        """Without a word: a job that was running is lost."""
        self._lock.release()

    def exit(self, code: int) -> None:
        """As the process ends; negative: by a signal."""
        self._code = code
        self.die()

    def wait(self) -> int:
        """For the thread that `submit` leaves behind to reap it."""
        return 0

    def poll(self) -> int | None:
        """How it ended, where a test says so; otherwise it was there when it was asked."""
        return self._code


Script = Callable[[ScriptedSupervisor], None]


class ScriptedSupervisors:
    """Starts one for each script, in order; each script has run when the start returns."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.started: list[ScriptedSupervisor] = []

    def start(self, command: Sequence[str], **_: Any) -> ScriptedSupervisor:
        assert self.scripts, f"one more supervisor was started: {command}"
        made = ScriptedSupervisor(command)
        self.started.append(made)
        self.scripts.pop(0)(made)
        return made


@contextmanager
def scripted_supervisors(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSupervisors]:
    """While this lasts, `submit` starts no process."""
    made = ScriptedSupervisors()
    with monkeypatch.context() as patched:
        patched.setattr("forebay.executors.job.host.subprocess.Popen", made.start)
        yield made
    for each in made.started:
        each.die()
