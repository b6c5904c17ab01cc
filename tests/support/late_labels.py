"""A project whose stream knows only some of its positives when it publishes them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    declared_project,
    parts_of,
    rows_of_day,
    with_column,
    write_history,
)

ROWS = 3_000
DAYS = 3


def write_stream(folder: Path, day: int, known: float) -> None:
    """A day of the stream, which knows a share of its positives: the rows of each quarter of an
    hour, published an hour after its end."""
    from forebay.datatasks.sources.log.writer import LogWriter

    writer = LogWriter(folder, 0)
    start = FIRST_DAY + day * DAY
    table = rows_of_day(start, ROWS, seed=100 + day)
    clicked = table.column("clicked").to_numpy()
    shown = np.random.default_rng(5).random(len(clicked)) < known
    table = with_column(table, "clicked", np.where(shown, clicked, 0))
    for part, end in parts_of(table, start, timedelta(minutes=15)):
        writer.append(part, end + timedelta(hours=1))


def late_project(
    root: Path,
    known: float,
    *,
    train: dict[str, Any] | None = None,
    source: dict[str, Any] | None = None,
) -> Project:
    """Three days of batch rows and of a stream that knows `known` of their positives."""
    pipeline = ads_pipeline("towers")
    pipeline["model"]["mixture"] = {"embeddings": "separate"}
    pipeline["train"] |= train or {}
    project = declared_project(root, pipeline, clicks=source)
    for day in range(DAYS):
        write_history(project.files, FIRST_DAY + day * DAY, ROWS, seed=100 + day)
        write_stream(project.log, day, known)
    return project
