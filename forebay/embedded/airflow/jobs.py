"""Jobs that tasks of the embedded Airflow started; they live in sessions of their own."""

from __future__ import annotations

import logging

from forebay.embedded.airflow.settings import MARK_NAME
from forebay.embedded.layout import Layout
from forebay.errors import ForebayError
from forebay.system.processes.identity import (
    ProcessIdentity,
    environment_variable,
    kill_all,
    processes_with,
)
from forebay.system.processes.parent import JOB_ID_NAME

CANCEL_SECONDS = 30.0
_LOG = logging.getLogger(__name__)


def left_processes(layout: Layout, **marks: str) -> list[ProcessIdentity]:
    """Living processes of this Airflow, except jobs and the caller."""
    return processes_with({MARK_NAME: str(layout.root), **marks}, without=JOB_ID_NAME)


def cancel_jobs(layout: Layout) -> list[str]:
    """Cancel every job that a task of this Airflow started; sealed checkpoints stay.

    Returns their ids. The tasks submit them again once Airflow runs again.
    """
    from forebay.executors.job.runners import Call, look_at, runner_named
    from forebay.executors.job.submit import attach

    found = {job_id for one in _job_processes(layout) if (job_id := _job_of(one))}
    runners = {each: place for each in found if (place := runner_named(layout.home, each))}
    told = [look_at(place, Call(ask="end")) for place in runners.values()]
    ids = sorted(found - runners.keys() | {each.job for each in told if each and each.job})
    for job_id in ids:
        try:
            handle = attach(layout.home, job_id)
            handle.cancel()
            handle.wait(CANCEL_SECONDS)
        except ForebayError as error:
            _LOG.warning("job %s cannot be cancelled cleanly: %s", job_id, error)
    kill_all(_job_processes(layout))
    return ids


def _job_processes(layout: Layout) -> list[ProcessIdentity]:
    found = processes_with({MARK_NAME: str(layout.root)})
    return [one for one in found if _job_of(one)]


def _job_of(process: ProcessIdentity) -> str | None:
    return environment_variable(process.pid, JOB_ID_NAME)
