"""A run that has failed: it leaves no job behind, and the windows after it hear of it.

There are moments when no task follows a job, and whoever waits for a run looks rarely.

Airflow calls this in the process that ends the run: the API server for a person's mark, the
scheduler otherwise. A task that lives ends its job itself (`on_kill`).
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

from forebay.errors import ForebayError

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

# The two tasks that own a job, by name: this is imported by components that run no task.
_OWNERS = frozenset({"DataExecutorsOperator", "TrainingExecutorsOperator"})
# The scheduler does nothing else meanwhile; what takes longer continues in a thread.
_ANSWER_SECONDS = 5.0
_THREAD_NAME = "forebay-failed"
_SUPERVISOR_SECONDS = 4.0
_LOG = logging.getLogger(__name__)


@hookimpl
def on_dag_run_failed(dag_run: DagRun) -> None:
    """End the jobs that this run still owns, and wake the windows that wait for it.

    Runs of other DAGs are ignored.
    """
    dag = dag_run.dag
    if dag is None or not any(task.task_type in _OWNERS for task in dag.tasks):
        return
    names = (dag_run.dag_id, dag_run.run_id)
    # Of many runs that fail while the database is away, the scheduler waits for the first.
    waited = any(thread.name == _THREAD_NAME for thread in threading.enumerate())
    work = threading.Thread(target=_after_failure, args=names, name=_THREAD_NAME, daemon=True)
    work.start()
    work.join(0.0 if waited else _ANSWER_SECONDS)
    if work.is_alive():
        _LOG.warning("jobs of run %s of %s are not cancelled yet", dag_run.run_id, dag_run.dag_id)


def _after_failure(dag_id: str, run_id: str) -> None:
    try:
        wake_waiting_windows(dag_id)
        end_jobs_of(dag_id, run_id)
    except (ForebayError, OSError) as error:
        _LOG.error(
            "jobs of run %s of %s may still run (%s): `forebay cancel` ends a pipeline's job",
            run_id,
            dag_id,
            error,
        )


def end_jobs_of(dag_id: str, run_id: str) -> None:
    """Cancel what the run owns. Each job's end is certain then.

    Raises:
        ConfigError: when nothing says where Forebay's state is.
        InfrastructureError: when a supervisor does not answer.
    """
    from forebay.executors.job.handle import JobHandle
    from forebay.executors.job.stored_jobs import jobs_owned
    from forebay.operators.runs.stage_request import run_name
    from forebay.operators.settings import home

    for job in jobs_owned(home(), run_name(dag_id, run_id)):
        JobHandle(job.home, job.job_id, job.row.epoch).cancel(_SUPERVISOR_SECONDS)
        _LOG.info("run %s of %s failed: job %s is cancelled", run_id, dag_id, job.job_id)


def wake_waiting_windows(dag_id: str) -> None:
    """Windows that wait for the failed one see it at once, not at their next look.

    Raises:
        ConfigError: when nothing says where Forebay's state is.
        InfrastructureError: when it cannot be stored.
    """
    from forebay.operators.runs.run_failures import note_failure
    from forebay.operators.settings import home
    from forebay.system.instants import now_us

    note_failure(home(), dag_id, now_us())
