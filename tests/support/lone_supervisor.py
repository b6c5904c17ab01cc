"""A supervisor without processes: it holds the lock, reports, and ends when it is cancelled."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from forebay.executors.job import job_changes, job_rows
from forebay.executors.job.folder import SUPERVISOR, JobFolder
from forebay.executors.job.request import JobStatus
from forebay.executors.supervisor.supervisor import supervisor_arguments
from forebay.home.database.open import database_of
from forebay.system.files.locks import FileLock


def main() -> None:
    job_dir, descriptor = supervisor_arguments(None)
    folder = JobFolder(job_dir)
    assert descriptor is not None
    lock = FileLock.inherited(folder.supervisor_lock, descriptor)
    assert lock is not None
    lock.write(SUPERVISOR)
    database = database_of(folder.home)
    row = database.read(lambda rows: job_rows.find(rows, folder.job_id))
    assert row is not None
    told = {
        "state": "running",
        "started_at": datetime.now(UTC),
        "pids": {"supervisor": os.getpid()},
    }
    running = row.status.model_copy(update=told)
    report(folder, running)
    while True:
        answer = database.transact(
            lambda rows: job_changes.answer_cancel(rows, folder.job_id, running.epoch)
        )
        if answer is not None and answer.accepted:
            break
        database.transact(lambda rows: job_changes.beat(rows, folder.job_id, running.epoch, None))
        time.sleep(0.02)
    ended = {"state": "cancelled", "cancelled_by": answer.epoch, "ended_at": datetime.now(UTC)}
    report(folder, running.model_copy(update=ended))


def report(folder: JobFolder, status: JobStatus) -> None:
    database_of(folder.home).transact(lambda rows: job_changes.report(rows, status, None))


if __name__ == "__main__":
    main()
