"""A run that has failed leaves no job behind, not even in the moments when no task follows one.

Airflow calls this in the process that ends the run: the API server for a person's mark, the
scheduler otherwise. A task that lives ends its job itself (`on_kill`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

from forebay.errors import ForebayError

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

# The two tasks that own a job, by name: this is imported by components that run no task.
_OWNERS = frozenset({"DataExecutorsOperator", "TrainingExecutorsOperator"})
_LOG = logging.getLogger(__name__)


@hookimpl
def on_dag_run_failed(dag_run: DagRun) -> None:
    """End the jobs that this run still owns; runs of other DAGs are none of our business."""
    dag = dag_run.dag
    if dag is None or not any(task.task_type in _OWNERS for task in dag.tasks):
        return
    try:
        end_jobs_of(dag_run.dag_id, dag_run.run_id)
    except (ForebayError, OSError) as error:
        _LOG.warning("jobs of run %s of %s may go on: %s", dag_run.run_id, dag_run.dag_id, error)


def end_jobs_of(dag_id: str, run_id: str) -> None:
    """Cancel what the run owns. Returns once each job's end is certain.

    Raises:
        ConfigError: when nothing says where Forebay's state lies.
        InfrastructureError: when a supervisor does not answer.
    """
    from forebay.executors.job_owner import jobs_owned
    from forebay.operators.context import run_name
    from forebay.operators.settings import home

    for handle in jobs_owned(home(), run_name(dag_id, run_id)):
        handle.cancel()
        _LOG.info("run %s of %s failed: job %s is cancelled", run_id, dag_id, handle.job_id)
