"""Names of a DAG's tasks, used for XComs, links and queries to Airflow."""

from __future__ import annotations

from forebay.config.specs import datasets

TIMER = "timer"
SOURCES = "sources"
JOINER = "joiner"
SINK = "sink"
DATA_EXECUTORS = "data_executors"
TRAINING_EXECUTORS = "training_executors"
EVALUATE = "evaluate"
PUBLISH = "publish"


def source_label(use: str) -> str:
    """Name of a source use's task within its group. Airflow does not allow @ in ids."""
    return use.replace(datasets.AT, ".")
