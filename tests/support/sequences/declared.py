"""The pipeline that sequences are about: a log, Parquet cut by time, Parquet cut by path."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec

PIPELINE = "ads"
HISTORY, DAILY, CLICKS = "history", "daily", "clicks"
SOURCES = (HISTORY, DAILY, CLICKS)
FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
COLUMNS = {"event": "int", "at": "timestamp", "price": "float", "clicked": "int"}
# By source: its window lies so much earlier than the pipeline's.
OFFSETS = {HISTORY: DAY, DAILY: timedelta(0), CLICKS: timedelta(0)}


def day(number: float) -> datetime:
    return FIRST_DAY + number * DAY


def key(number: int) -> str:
    return f"{day(number):%Y-%m-%d}"


def number_of(instant: datetime) -> int:
    return (instant - FIRST_DAY) // DAY


def instants(*numbers: float) -> tuple[str, ...]:
    return tuple(f"{day(number):%Y-%m-%dT%H:%M:%SZ}" for number in numbers)


def sources_of(
    stream: dict[str, Any], columns: dict[str, str], silent_max: str
) -> dict[str, dict[str, Any]]:
    same = {
        "columns": columns,
        "event_time": "at",
        "label_null": "dead_letter",
        "ready": {"silent_max": silent_max},
    }
    by_path = {"path": f"data/{DAILY}", "window_path": "date={date}/*.parquet"}
    kinds: dict[str, dict[str, Any]] = {
        HISTORY: {"kind": "parquet", "options": {"path": f"data/{HISTORY}"}},
        DAILY: {"kind": "parquet", "options": by_path},
        CLICKS: stream,
    }
    return {name: copy.deepcopy({**same, **kind}) for name, kind in kinds.items()}


def pipeline_of(*, warm: bool) -> dict[str, Any]:
    """warm: whether each line begins with a warm start over the two days before the first."""
    train: dict[str, Any] = {"paradigm": "mixture", "minibatch_rows": 32}
    if warm:
        train["warm_start"] = instants(-2)[0]
    return {
        "dataset": {
            "window": "1d",
            "timezone": "UTC",
            "start": instants(0)[0],
            "event_id": "event",
            "label": {"column": "clicked"},
            "streams": {
                name: {"sources": [name], "offset": f"{offset // timedelta(hours=1)}h"}
                for name, offset in OFFSETS.items()
            },
            "features": {"price": {"encode": "numeric"}},
        },
        "model": {"kind": "count"},
        "train": train,
        "job": {"checkpoint": {"every_steps": 2}},
    }


def project_of(
    root: Path, sources: Mapping[str, dict[str, Any]], pipeline: dict[str, Any]
) -> Project:
    specs = {
        name: SourceSpec.model_validate({"name": name, **copy.deepcopy(values)})
        for name, values in sources.items()
    }
    spec = PipelineSpec.model_validate({"name": PIPELINE, **copy.deepcopy(pipeline)})
    return Project(root, root / "config", specs, {PIPELINE: spec}, [], {}, {})
