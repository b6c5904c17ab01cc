"""A project that trains on clicks, known at once, and sales, known hours later, in one model."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.declarations import COLUMNS
from support.parquet_files import null_labels
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    declared_project,
    parts_of,
    rows_of_day,
    with_column,
)

DAYS = 3
ROWS = 3_000
WAIT = timedelta(hours=2)
DELAY_HOURS = 12.0  # of a sale, on the mean
NULL_EVERY = 50
TWO_COLUMNS = {**COLUMNS, "sold": "int"}
LABELS: dict[str, Any] = {
    "click": {"column": "clicked", "delay": "none"},
    "sale": {"column": "sold", "known_at": "known", "weight": 2.0},
}


def events(day: datetime, rows: int = ROWS) -> pa.Table:
    """Rows of a day: two of three clicks of some users are sales, known hours after the event."""
    seed = (day - FIRST_DAY) // DAY + 100
    table = rows_of_day(day, rows, seed)
    rng = np.random.default_rng(seed)
    clicked = table.column("clicked").to_numpy()
    likes = np.array([int(user[1:]) % 3 != 0 for user in table.column("user").to_pylist()])
    sold = clicked * (rng.random(rows) < np.where(likes, 0.7, 0.1))
    delays = (rng.exponential(DELAY_HOURS, rows) * 3600e6).astype("timedelta64[us]")
    known = table.column("at").to_numpy() + delays
    return table.append_column("sold", pa.array(sold.astype(np.int64))).append_column(
        "known", pa.array(known, pa.timestamp("us", tz="UTC"))
    )


def write_batch(folder: Path, day: datetime, rows: int = ROWS) -> None:
    """A day of history; of some rows nobody knows whether they were sold."""
    path = folder / f"date={day:%Y-%m-%d}" / "part-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(events(day, rows), path)
    null_labels(path, NULL_EVERY, "sold")


def write_stream(folder: Path, day: datetime, rows: int = ROWS) -> None:
    """A day of the stream, `WAIT` after each hour: clicks as they are, sales known by then."""
    from forebay.datatasks.sources.log.writer import LogWriter

    writer = LogWriter(folder, 0)
    for piece, end in parts_of(events(day, rows), day, timedelta(hours=1)):
        published = end + WAIT
        here = piece.column("known").to_numpy() <= np.datetime64(published.replace(tzinfo=None))
        fresh = np.where(here, piece.column("sold").to_numpy(), 0)
        writer.append(with_column(piece, "sold", fresh).drop_columns(["known"]), published)


def two_labels(root: Path, rows: int = ROWS, **train: Any) -> Project:
    """Three windows of a day; `train` is added to what the pipeline says there."""
    pipeline = ads_pipeline("towers")
    del pipeline["dataset"]["label"]
    pipeline["dataset"]["named_labels"] = {name: dict(label) for name, label in LABELS.items()}
    pipeline["train"] |= {"delay": "head", "compare": ["stream"], "minibatch_rows": 256} | train
    history = {"columns": {**TWO_COLUMNS, "known": "timestamp"}}
    clicks = {"columns": TWO_COLUMNS}
    project = declared_project(root, pipeline, history=history, clicks=clicks)
    for day in range(DAYS):
        write_batch(project.files, FIRST_DAY + (day - 1) * DAY, rows)
        write_stream(project.log, FIRST_DAY + day * DAY, rows)
    return project
