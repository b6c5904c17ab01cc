"""A year of hourly windows in one home: what a look costs then, against a home of ten windows.

Every window is planned, trained, judged and let serve by the functions that production calls, one
window after the other; only the training itself is left out: its checkpoint, its model and its 200
scored rows are made up. Then both homes, one of `--windows` and one of ten, are looked at: how many
statements, opened files and listed folders `evaluate`, `publish`, `why` and `run` of their last
window take, with the CPU seconds beside them (median of three), and how long `explain` of a month
and `report` of everything take.

    python benchmarks/year.py --windows 9000
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from sqlalchemy import Engine, event

from forebay.config.windows import Window
from forebay.datatasks.operations import by_stream, fingerprint_of
from forebay.datatasks.planning import plan_windows
from forebay.datatasks.sink import sink_window
from forebay.executors.backfill_cost import BackfillEstimator
from forebay.executors.evaluation.range_summary import summarise_windows
from forebay.executors.model_line.link import Link, ReadRows
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.run import Run
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.why import why_window
from forebay.executors.trainer.stored_files import SCORES_FOLDER, WindowArchive
from forebay.executors.window_files.scores import ScoreWriter
from forebay.home.store import store_of
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums
from forebay.system.instants import from_us

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ROWS = 200
FEW = 10
PARADIGM = "mixture"


def project(root: Path, windows: int) -> None:
    """A pipeline over one source, with rows for the windows and one more."""
    source = {
        "kind": "parquet",
        "options": {"path": "data", "window_path": "hour={date}T{hour}/*.parquet"},
        "columns": {"event": "int", "at": "timestamp", "user": "int", "clicked": "int"},
        "event_time": "at",
    }
    pipeline = {
        "dataset": {
            "window": "1h",
            "start": START.date().isoformat(),
            "event_id": "event",
            "label": {"column": "clicked"},
            "streams": {"clicks": {"sources": ["clicks"]}},
            "features": {"user": {"encode": "hash", "buckets": 100}},
        },
        "model": {"kind": "count"},
        "job": {"roles": {"data": {"count": 1}}},
    }
    for path, text in (("sources/clicks", source), ("pipelines/ads", pipeline)):
        file = root / "config" / f"{path}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(text))
    write_rows(root, START + windows * HOUR)


def write_rows(root: Path, at: datetime) -> None:
    """Rows of one window, for a run that really trains it."""
    folder = root / "data" / f"hour={at:%Y-%m-%dT%H}"
    folder.mkdir(parents=True)
    columns = {
        "event": np.arange(ROWS),
        "at": pa.array([at] * ROWS, pa.timestamp("us", "UTC")),
        "user": np.arange(ROWS) % 7,
        "clicked": np.arange(ROWS) % 2,
    }
    pq.write_table(pa.table(columns), folder / "rows.parquet")
