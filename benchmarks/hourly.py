"""A project with a pipeline over one source of hourly rows, for what windows cost."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

HOUR = timedelta(hours=1)


def write_project(root: Path, start: datetime, hours: int, rows: int, **pipeline: Any) -> None:
    """Write YAML of a pipeline named `ads`, and `rows` rows of each hour.

    Args:
        root: the project's folder; made where it is not there
        start: of the first hour and window, in UTC
        hours: how many hours have rows
        rows: of one hour
        pipeline: what the pipeline declares besides its dataset
    """
    source = {
        "kind": "parquet",
        "options": {"path": "data", "window_path": "hour={date}T{hour}/*.parquet"},
        "columns": {"event": "int", "at": "timestamp", "user": "int", "clicked": "int"},
        "event_time": "at",
    }
    dataset = {
        "window": "1h",
        "start": start.date().isoformat(),
        "event_id": "event",
        "label": {"column": "clicked"},
        "streams": {"clicks": {"sources": ["clicks"]}},
        "features": {"user": {"encode": "hash", "buckets": 100}},
    }
    declared = {"sources/clicks": source, "pipelines/ads": {"dataset": dataset, **pipeline}}
    for path, text in declared.items():
        file = root / "config" / f"{path}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(text))
    for number in range(hours):
        _write_rows(root, start + number * HOUR, rows)


def _write_rows(root: Path, at: datetime, rows: int) -> None:
    folder = root / "data" / f"hour={at:%Y-%m-%dT%H}"
    folder.mkdir(parents=True)
    columns = {
        "event": np.arange(rows),
        "at": pa.array([at] * rows, pa.timestamp("us", "UTC")),
        "user": np.arange(rows) % 7,
        "clicked": np.arange(rows) % 2,
    }
    pq.write_table(pa.table(columns), folder / "rows.parquet")
