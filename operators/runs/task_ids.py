"""Names of a DAG's tasks. XComs, links and questions to Airflow go by them."""

from __future__ import annotations

TIMER = "timer"
SOURCES = "sources"
JOINER = "joiner"
SINK = "sink"
DATA_EXECUTORS = "data_executors"
TRAINING_EXECUTORS = "training_executors"
EVALUATE = "evaluate"
PUBLISH = "publish"


def source_task(source: str) -> str:
    """The id of a source's task: it lies in the group of the sources."""
    return f"{SOURCES}.{source}"
