"""Which run of a scheduler answers for a job, so that what nobody follows any more can end.

A task hands its job on to the next one, or dies and comes again. Whoever ends the run in such a
moment meets no process that could end the job: the job's own folder has to tell whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from forebay.errors import DataError
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
    for path in sorted(home.jobs.glob(f"*/{OWNER_NAME}")):
        owner = _read(path)
        handle = JobHandle(home, path.parent.name, owner.epoch)
        if owner.run != run or handle.folder.epoch() != owner.epoch:
            continue
        status = handle.folder.stored_status()
        if status is not None and not status.ended:
            yield handle


def _read(path: Path) -> Owner:
    try:
        return Owner.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path} is damaged: remove it") from error
