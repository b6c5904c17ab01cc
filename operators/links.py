"""Buttons on a task's page.

Browsers do not open `file:` links from an Airflow page, and Forebay has no pages of its own, so the
buttons lead to Airflow pages: the log with the job's progress, and the page with the metrics. Those
pages contain the paths of the job's logs and of the evaluation as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import attrs
from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from forebay.operators.runs.task_ids import EVALUATE, TRAINING_EXECUTORS

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


def runs_page(dag_id: str) -> str:
    base = conf.get("api", "base_url", fallback="http://localhost:8080").rstrip("/")
    return f"{base}/dags/{quote(dag_id, safe='')}/runs"


def run_page(dag_id: str, run_id: str) -> str:
    return f"{runs_page(dag_id)}/{quote(run_id, safe='')}"


@attrs.define()
class TrainingLink(BaseOperatorLink):
    """Link to the log of training_executors in the same run.

    It contains the job's progress, its end, and the path of the job's own logs.
    """

    name = "Training log"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        return f"{run_page(ti_key.dag_id, ti_key.run_id)}/tasks/{TRAINING_EXECUTORS}"


@attrs.define()
class MetricsLink(BaseOperatorLink):
    """Link to what evaluate returned in the same run: metrics, rows, and the path of the report."""

    name = "Metrics"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        return f"{run_page(ti_key.dag_id, ti_key.run_id)}/tasks/{EVALUATE}/xcom"


@attrs.define()
class WindowBeforeLink(BaseOperatorLink):
    """Link to the previous window's run, which this one waits for; else to the list of runs."""

    name = "Window before"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        run_id = getattr(operator, "run_before", "")
        return run_page(ti_key.dag_id, run_id) if run_id else runs_page(ti_key.dag_id)
