"""`JobHost`: where the supervisors of a home's jobs run. Whoever submits and asks knows no more.

A local one keeps a folder for each job; see `folder` for how its lock is handed on.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from forebay.config.specs.jobs import INLINE
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.measures import Measure, Progress
from forebay.executors.job.request import JobRequest
from forebay.executors.job.runners import (
    COMMAND_NAME,
    Call,
    RunnerPlace,
    hand_on,
    job_environment,
    look_at,
    warm_memory,
)
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.home.runtime import processes_of_job
from forebay.system.files.locks import FileLock
from forebay.system.processes.identity import kill_all
from forebay.system.processes.parent import JOB_ID_NAME

# Arguments with which an interpreter runs a supervisor.
SUPERVISOR_ARGUMENTS = ("-P", "-m", "forebay.executors.supervisor")
# By name, as above: a submitter knows no process of a job.
_INLINE_SUPERVISOR = "forebay.executors.supervisor.inline"
SUPERVISOR_COMMAND = (sys.executable, *SUPERVISOR_ARGUMENTS)
# How long a job must stay held to count as one with a live supervisor.
LIVE_SECONDS = 0.2


class Started(Protocol):
    """A supervisor as its submitter sees it."""

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""


class HeldJob(Protocol):
    """The right to run a job, which nobody else has at the same time."""

    def prepare(self, request: JobRequest, *, continues: bool) -> None:
        """Make everything ready for a new supervisor.

        continues: whether it continues what an earlier one was doing when it was lost.
        """

    def start(self, request: JobRequest, command: Sequence[str]) -> Started:
        """Start the supervisor, which has the right from now on, and keeps it while it lives."""

    def end_left(self) -> None:
        """End processes that an earlier supervisor left."""


class JobHost(Protocol):
    """What can be asked of the place where jobs of a home run, by their ids."""

    def hold(self, job_id: str, seconds: float) -> AbstractContextManager[HeldJob | None]:
        """None where somebody else keeps the right for so many seconds.

        As does who removes what is left of an earlier run.
        """

    def is_held(self, job_id: str) -> bool:
        """Whether a supervisor runs the job here, or somebody is about to start one."""

    def is_supervised(self, job_id: str) -> bool:
        """Whether a supervisor runs the job here."""

    def poke(self, job_id: str) -> None:
        """Make the supervisor look at the job's row now, not within a second."""

    def progress(self, job_id: str) -> Progress | None:
        """The trainer's newest report; None before the first."""

    def measure(self, job_id: str) -> Measure | None:
        """What its processes used in the newest interval; None before the first."""

    def logs(self, job_id: str) -> Path:
        """The folder with a log for each process."""


class LocalHost:
    """A `JobHost`: this machine."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def folder(self, job_id: str) -> JobFolder:
        return JobFolder(self._home.job(job_id))

    @contextmanager
    def hold(self, job_id: str, seconds: float) -> Iterator[HeldJob | None]:
        folder = self.folder(job_id)
        lock = FileLock(folder.supervisor_lock)
        try:
            folder.create()
            is_taken = lock.acquire(seconds)
        except FileNotFoundError:  # the folder of an earlier run is being removed: see retention
            is_taken = False
        if not is_taken:
            yield None
            return
        try:
            lock.write("")  # its last holder is gone
            yield LocalJob(folder, lock)
        finally:
            lock.release()

    def is_held(self, job_id: str) -> bool:
        return self.folder(job_id).is_held()

    def is_supervised(self, job_id: str) -> bool:
        return self.folder(job_id).is_supervised()

    def poke(self, job_id: str) -> None:
        self.folder(job_id).poke()

    def progress(self, job_id: str) -> Progress | None:
        return self.folder(job_id).progress()

    def measure(self, job_id: str) -> Measure | None:
        return self.folder(job_id).measures.newest()

    def logs(self, job_id: str) -> Path:
        return self.folder(job_id).logs


def host_of(home: Home) -> JobHost:
    """Where the jobs of a home run."""
    return LocalHost(home)


@dataclass(frozen=True)
class LocalJob:
    """A `HeldJob`."""

    folder: JobFolder
    lock: FileLock

    def prepare(self, request: JobRequest, *, continues: bool) -> None:
        if request.pipeline_spec().job.stays:
            # Refused here, before a job is stored for a runner that could not start.
            warm_memory()
            self._runner_place(request).require_private()
        self.folder.prepare(request, continues=continues)

    def start(self, request: JobRequest, command: Sequence[str]) -> Started:
        job = request.pipeline_spec().job
        if job.plane == INLINE:
            start_here = import_module(_INLINE_SUPERVISOR).start_here
            started = cast("Started", start_here(self.folder.path, self.lock))
            self.lock.leave()
            return started
        name, place = request.job_id, self._runner_place(request)
        if not job.stays:
            look_at(place, Call(ask="end"))  # it was declared otherwise before
        else:
            handed = hand_on(place, request, command, self.folder.path, self.lock)
            if handed is not None:
                self.lock.leave()
                return handed
            name = place.name
        environment = {
            **job_environment(request),
            JOB_ID_NAME: name,
            ENVIRONMENT_NAME: request.home,
            COMMAND_NAME: " ".join(command),
        }
        where = ("--job", str(self.folder.path.absolute()), "--lock", str(self.lock.descriptor))
        with self.folder.supervisor_log.open("ab") as log:
            process = subprocess.Popen(
                [*command, *where],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                pass_fds=(self.lock.descriptor,),
            )
        self.lock.leave()
        # The submitter may run for months: the supervisor must not become a zombie below it.
        name = f"reap-{request.job_id}"
        threading.Thread(target=process.wait, name=name, daemon=True).start()
        return process

    def _runner_place(self, request: JobRequest) -> RunnerPlace:
        return RunnerPlace(self.folder.home, request.pipeline_name, request.line)

    def end_left(self) -> None:
        kill_all(processes_of_job(self.folder.job_id, self.folder.home.root))
