"""A Parquet source over files that a test has written, and what is read from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.tasks import Chunk, DataTask, Position
from forebay.testing.source_suite import tasks_of

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def table(times: list[datetime | None], first: int = 0) -> pa.Table:
    return pa.table(
        {
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "n": np.arange(first, first + len(times)),
        }
    )


def write(path: Path, rows: pa.Table, **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, **more)
    return path


def source(root: Path, options: dict[str, Any] | None = None, **more: Any) -> Source:
    fields = {
        "name": "s",
        "kind": "parquet",
        "options": options or {"path": "data"},
        "columns": {"at": "timestamp", "n": "int"},
        "event_time": "at",
    }
    return open_source(SourceSpec.model_validate(fields | more), root)


def days(count: int, start: datetime = START) -> list[Interval]:
    return [Interval(start + DAY * n, start + DAY * (n + 1)) for n in range(count)]


def read(opened: Source, spans: list[Interval], index: int = 0, **more: Any) -> list[Chunk]:
    tasks = tasks_of(opened.scan(spans), spans, index)
    return [chunk for task in tasks for chunk in open_task(opened, task, **more)]


def open_task(
    opened: Source,
    task: DataTask,
    position: Position | None = None,
    chunk_rows: int = 1000,
    columns: tuple[str, ...] = ("n",),
) -> Iterator[Chunk]:
    return opened.open(task, position, list(columns), chunk_rows)


def numbers(chunks: list[Chunk]) -> list[int]:
    return [n for chunk in chunks for n in chunk.batch.column("n").to_pylist()]


def evenly(start: datetime, count: int, step: timedelta) -> list[datetime | None]:
    return [start + step * n for n in range(count)]
