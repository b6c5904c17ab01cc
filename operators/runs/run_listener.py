"""A run's note names its window; a failed run leaves no job behind, and later windows are told.

At times no task is following a job, and tasks waiting for a run rarely check.

Airflow calls this in the process that ends the run: the API server if a user marks it failed, the
scheduler otherwise. A running task ends its job itself (`on_kill`).
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

from forebay.errors import ForebayError
from forebay.operators.timetable import WindowTimetable

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

# The two tasks that own a job, by name: this module is imported by components that run no tasks.
_OWNERS = frozenset({"DataExecutorsOperator", "TrainingExecutorsOperator"})
# The scheduler does nothing else meanwhile; longer work continues in a thread.
_ANSWER_SECONDS = 5.0
_THREAD_NAME = "forebay-failed"
_SUPERVISOR_SECONDS = 4.0
_LOG = logging.getLogger(__name__)


@hookimpl
def on_dag_run_running(dag_run: DagRun) -> None:
    """Name the run's window in its note: Airflow shows a run by the time after it, a day later.

    What a person has written stays.
    """
    timetable = getattr(dag_run.dag, "timetable", None)
    begin = dag_run.data_interval_start
    if isinstance(timetable, WindowTimetable) and begin is not None and not dag_run.note:
        dag_run.note = f"window {timetable.grid.at(begin).key}"


@hookimpl
def on_dag_run_failed(dag_run: DagRun) -> None:
    """End the jobs that this run still owns, and wake the windows that wait for it.

    Runs of other DAGs are ignored.
    """
    dag = dag_run.dag
    if dag is None or not any(task.task_type in _OWNERS for task in dag.tasks):
        return
    names = (dag_run.dag_id, dag_run.run_id)
    # If many runs fail while the database is unavailable, the scheduler waits only for the first.
    waited = any(thread.name == _THREAD_NAME for thread in threading.enumerate())
    work = threading.Thread(target=_after_failure, args=names, name=_THREAD_NAME, daemon=True)
    work.start()
    work.join(0.0 if waited else _ANSWER_SECONDS)
    if work.is_alive():
        _LOG.warning("jobs of run %s of %s are not cancelled yet", dag_run.run_id, dag_run.dag_id)


def _after_failure(dag_id: str, run_id: str) -> None:
    from forebay.executors.job.handle import JobHandle
    from forebay.executors.job.stored_jobs import jobs_owned
    from forebay.operators.runs.stage_request import run_name
    from forebay.operators.settings import home

    try:
        wake_waiting_windows(dag_id)
        for job in jobs_owned(home(), run_name(dag_id, run_id)):
            # After this it has certainly ended.
            JobHandle(job.home, job.job_id, job.row.epoch).cancel(_SUPERVISOR_SECONDS)
            _LOG.info("run %s of %s failed: job %s is cancelled", run_id, dag_id, job.job_id)
    except (ForebayError, OSError) as error:
        unknown = "jobs of run %s of %s may still run (%s): `forebay cancel %s` ends them"
        _LOG.error(unknown, run_id, dag_id, error, dag_id)


def wake_waiting_windows(dag_id: str) -> None:
    """Let windows that wait for the failed one see it immediately, not at their next check.

    Raises:
        ConfigError: when it is not configured where Forebay's state is.
        InfrastructureError: when it cannot be stored.
    """
    from forebay.operators.runs.run_failures import note_failure
    from forebay.operators.settings import home
    from forebay.system.instants import now_us

    note_failure(home(), dag_id, now_us())
