"""A supervisor without processes: it holds the lock, reports, and ends when it is cancelled."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime

from forebay.executors.job import job_changes
from forebay.executors.job.stored_jobs import stored_job
from forebay.home.database.open import database_of
from support.scripted_supervisor import ScriptedSupervisor

if __name__ == "__main__":
    made = ScriptedSupervisor(sys.argv)
    job, database = made.folder.job_id, database_of(made.folder.home)
    made.report("running", started_at=datetime.now(UTC), pids={"supervisor": os.getpid()})
    epoch = stored_job(made.folder.home, job).row.status.epoch
    while True:
        answer = database.transact(lambda rows: job_changes.answer_cancel(rows, job, epoch))
        if answer is not None and answer.accepted:
            break
        database.transact(lambda rows: job_changes.beat(rows, job, epoch, None))
        time.sleep(0.02)
    made.report("cancelled", cancelled_by=answer.epoch, ended_at=datetime.now(UTC))
