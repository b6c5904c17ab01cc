"""Names of a DAG's tasks. XComs, links and questions to Airflow go by them."""

from __future__ import annotations

from forebay.config import source_uses

TIMER = "timer"
SOURCES = "sources"
JOINER = "joiner"
SINK = "sink"
DATA_EXECUTORS = "data_executors"
TRAINING_EXECUTORS = "training_executors"
EVALUATE = "evaluate"
PUBLISH = "publish"


def source_label(use: str) -> str:
    """What the task of a use of a source is called in its group. Airflow takes no @ in ids."""
    return use.replace(source_uses.AT, ".")


def source_task(use: str) -> str:
    """The id of the task of a use of a source: it lies in the group of the sources."""
    return f"{SOURCES}.{source_label(use)}"
