"""Which run of a scheduler owns a job, so that a job that no task follows any more can be ended.

A task hands its job on to the next one, or dies and is started again. When the run is ended at such
a moment, no process is there that could end the job: the job's own folder says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from forebay.executors.job.folders import all_jobs
from forebay.executors.job.handle import JobHandle
from forebay.home.paths import Home
from forebay.system.files import write_atomically
from forebay.system.message import Message

OWNER_NAME = "owner.json"


class Owner(Message):
    """The run that made `epoch` the newest of a job."""

    epoch: int
    run: str


def own(handle: JobHandle, run: str) -> None:
    """Store whose job it is; nothing where a newer owner came first."""
    with handle.folder.launch_lock():
        if handle.folder.epoch() == handle.epoch:
            owner = Owner(epoch=handle.epoch, run=run)
            write_atomically(handle.folder.path / OWNER_NAME, owner.model_dump_json())


def jobs_owned(home: Home, run: str) -> Iterator[JobHandle]:
    """Jobs without an end whose newest owner is this run.

    Raises:
        DataError: when a job's owner cannot be read.
    """
    for job in all_jobs(home):
        owner = Owner.of_file(job.folder.path / OWNER_NAME)
        if owner is None or owner.run != run or job.folder.epoch() != owner.epoch:
            continue
        status = job.folder.stored_status()
        if status is not None and not status.ended:
            yield JobHandle(home, job.job_id, owner.epoch)
