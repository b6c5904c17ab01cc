"""The pipeline that sequences are about: a log, Parquet cut by time, Parquet cut by path."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec

PIPELINE = "ads"
STREAM, BY_TIME, BY_PATH = "clicks", "history", "daily"
SOURCES = (BY_TIME, BY_PATH, STREAM)
FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 5
COLUMNS = {"event": "int", "at": "timestamp", "price": "float", "clicked": "int"}
# By source: its window lies so much earlier than the pipeline's.
OFFSETS = {BY_TIME: DAY, BY_PATH: timedelta(0), STREAM: timedelta(0)}


def day(number: int) -> datetime:
    """The instant at which a day begins: 0 is the dataset's first."""
    return FIRST_DAY + number * DAY


def key(number: int) -> str:
    return f"{day(number):%Y-%m-%d}"


def number_of(instant: datetime) -> int:
    return (instant - FIRST_DAY) // DAY


def declared(root: Path, stream: dict[str, Any] | None = None, *, warm: bool = False) -> Project:
    """The project below a folder. stream: kind and options of the stream, instead of a log.

    warm: whether each line begins with a warm start over the two days before the first.
    """
    kinds: dict[str, dict[str, Any]] = {
        BY_TIME: {"kind": "parquet", "options": {"path": f"data/{BY_TIME}"}},
        BY_PATH: {
            "kind": "parquet",
            "options": {"path": f"data/{BY_PATH}", "window_path": "date={date}/*.parquet"},
        },
        STREAM: stream or {"kind": "log", "options": {"path": f"data/{STREAM}"}},
    }
    same = {
        "columns": COLUMNS,
        "event_time": "at",
        "label_null": "dead_letter",
        "ready": {"silent_max": "3d"},
    }
    sources = {
        name: SourceSpec.model_validate({"name": name, **same, **kind})
        for name, kind in kinds.items()
    }
    pipeline = PipelineSpec.model_validate(_pipeline(warm=warm))
    return Project(
        root=root,
        config_dir=root / "config",
        sources=sources,
        pipelines={PIPELINE: pipeline},
        problems=[],
        source_files={},
        pipeline_files={},
    )


def _pipeline(*, warm: bool) -> dict[str, Any]:
    train: dict[str, Any] = {"paradigm": "mixture", "minibatch_rows": 32}
    if warm:
        train["warm_start"] = f"{day(-2):%Y-%m-%d}"
    return {
        "name": PIPELINE,
        "dataset": {
            "window": "1d",
            "start": f"{day(0):%Y-%m-%d}",
            "event_id": "event",
            "label": {"column": "clicked"},
            "streams": {
                name: {"sources": [name], "offset": f"{OFFSETS[name] // timedelta(hours=1)}h"}
                for name in SOURCES
            },
            "features": {"price": {"encode": "numeric"}},
        },
        "model": {"kind": "count"},
        "train": train,
        "job": {"checkpoint": {"every_steps": 2}},
    }
