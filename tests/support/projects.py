"""Generated projects: a Parquet source, a log or Kafka source, a pipeline over both."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from forebay.cli import run
from forebay.home.database.open import close_databases
from support.declarations import COLUMNS

FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)

# They start daemons, or become Airflow.
_PROCESSES = {"up", "down", "airflow", "kafka"}


def called(
    arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as a function. environment: all of its variables."""
    out, err = io.StringIO(), io.StringIO()
    close_databases()
    variables = patch.dict(os.environ, environment, clear=True)
    with variables, chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            code = run(arguments)
        finally:
            close_databases()
    return subprocess.CompletedProcess(
        ["forebay", *arguments], code, out.getvalue(), err.getvalue()
    )


def rows_of_day(day: datetime, rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    seconds = np.sort(random.integers(0, 86_400_000_000, rows))
    user = random.zipf(1.3, rows) % 500
    price = random.gamma(2.0, 10.0, rows)
    clicked = random.random(rows) < 1 / (1 + np.exp(2 - (user % 7) / 2 + price / 40))
    start = np.datetime64(day.replace(tzinfo=None), "us")
    lengths = random.integers(0, 4, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tags = np.char.add("t", random.integers(0, 50, int(offsets[-1])).astype(str))
    return pa.table(
        {
            "event": np.arange(rows, dtype=np.int64) + int(day.timestamp()) * 1_000_000,
            "at": pa.array(start + seconds, pa.timestamp("us", tz="UTC")),
            "user": pa.array(np.char.add("u", user.astype(str))),
            "price": price,
            "mobile": random.random(rows) < 0.5,
            "tags": pa.ListArray.from_arrays(pa.array(offsets), pa.array(tags)),
            "clicked": clicked.astype(np.int64),
        }
    )


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


@dataclass(frozen=True)
class Topic:
    bootstrap: str
    name: str


@dataclass
class Project:
    root: Path
    pipeline: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    home_folder: Path | None = None
    topic: Topic | None = None

    @property
    def home(self) -> Path:
        return self.home_folder or self.root / ".forebay"

    @property
    def files(self) -> Path:
        return self.root / "data" / "history"

    @property
    def log(self) -> Path:
        return self.root / "data" / "clicks"

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "forebay", *arguments]

    def env(self) -> dict[str, str]:
        return {**os.environ, "FOREBAY_HOME": str(self.home), **self.environment}

    def forebay(
        self,
        *arguments: str,
        check: bool = True,
        timeout_seconds: float = 120,
        process: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Call a command. process: in one of its own, with a limit."""
        is_own = "command" in vars(self) or type(self).command is not Project.command
        if process or is_own or arguments[0] in _PROCESSES:
            done = subprocess.run(
                self.command(*arguments),
                cwd=self.root,
                env=self.env(),
                capture_output=True,
                text=True,
                timeout=timeout_seconds,
                check=False,
            )
        else:
            done = called(arguments, self.root, self.env())
        if check and done.returncode != 0:
            raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env=self.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, first: str, last: str, *more: str, **options: Any) -> dict[str, Any]:
        summary = self.root / "summary.json"
        self.forebay(
            "run", "ads", "--from", first, "--to", last, "--summary", str(summary), *more, **options
        )
        return json.loads(summary.read_text())

    def write_pipeline(self) -> None:
        self._write("pipelines/ads.yaml", self.pipeline)

    def write_source(self, name: str, spec: dict[str, Any]) -> None:
        self._write(f"sources/{name}.yaml", spec)

    def _write(self, file: str, spec: dict[str, Any]) -> None:
        path = self.root / "config" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(spec, sort_keys=False))


def declared_project(
    root: Path,
    pipeline: dict[str, Any] | None = None,
    *,
    history: dict[str, Any] | None = None,
    clicks: dict[str, Any] | None = None,
    topic: Topic | None = None,
) -> Project:
    """The YAML of a pipeline and its two sources, without any rows; of each, what is changed."""
    made = Project(root, pipeline or ads_pipeline(), topic=topic)
    made.write_source("history", history_source(**(history or {})))
    made.write_source("clicks", topic_source(topic) if topic else clicks_source(**(clicks or {})))
    made.write_pipeline()
    return made


def history_source(**changes: Any) -> dict[str, Any]:
    return _source("parquet", "data/history", "2026-02-28", changes)


def clicks_source(**changes: Any) -> dict[str, Any]:
    return _source("log", "data/clicks", "2026-03-01", changes)


def _source(kind: str, path: str, starts: str, changes: dict[str, Any]) -> dict[str, Any]:
    fixed = {"kind": kind, "options": {"path": path}, "columns": COLUMNS, "event_time": "at"}
    return {**fixed, "starts": starts, **changes}


def topic_source(topic: Topic, **changes: Any) -> dict[str, Any]:
    options = {"bootstrap": topic.bootstrap, "topic": topic.name, **changes.pop("options", {})}
    return clicks_source(**{"kind": "kafka", "options": options, **changes})


def ads_pipeline(model: str = "count", **job: Any) -> dict[str, Any]:
    return {
        "dataset": {
            "window": "1d",
            "start": "2026-03-01",
            "event_id": "event",
            "label": {"column": "clicked"},
            "streams": {
                "history": {"sources": ["history"], "offset": "24h"},
                "clicks": {"sources": ["clicks"], "weight": 1.2},
            },
            "features": {
                "user": {"encode": "hash", "buckets": 1000},
                "price": {"encode": "numeric", "transform": "log1p"},
                "mobile": {"encode": "hash", "buckets": 3, "dimension": 2},
                "tags": {"encode": "hash", "buckets": 100, "dimension": 4},
            },
        },
        "model": {"kind": model},
        "train": {"paradigm": "mixture", "minibatch_rows": 1024},
        "job": {"checkpoint": {"every_steps": 50}} | job,
    }


def write_history(folder: Path, day: datetime, rows: int, files: int = 2, seed: int = 0) -> None:
    table = rows_of_day(day, rows, seed)
    target = folder / f"date={day:%Y-%m-%d}"
    target.mkdir(parents=True, exist_ok=True)
    step = -(-rows // files)
    for number in range(files):
        piece = table.slice(number * step, step)
        pq.write_table(piece, target / f"part-{number}.parquet", row_group_size=20_000)


def parts_of(
    table: pa.Table, day: datetime, length: timedelta
) -> Iterator[tuple[pa.Table, datetime]]:
    at, start = table.column("at").to_numpy(), np.datetime64(day.replace(tzinfo=None), "us")
    for number in range(DAY // length):
        low, high = np.searchsorted(at, [start + number * length, start + (number + 1) * length])
        yield table.slice(low, high - low), day + (number + 1) * length


def hourly_batches(
    day: datetime, rows: int, partitions: int, seed: int
) -> Iterator[tuple[pa.Table, datetime, int]]:
    """One day of stream rows as (micro-batch, publication, partition): each hour, a minute before
    its end."""
    for part, end in parts_of(rows_of_day(day, rows, seed), day, timedelta(hours=1)):
        for partition in range(partitions):
            mine = part.take(pa.array(np.arange(partition, part.num_rows, partitions)))
            yield mine, end - timedelta(minutes=1), partition


def write_log(folder: Path, day: datetime, rows: int, partitions: int = 2, seed: int = 1) -> None:
    from forebay.datatasks.sources.log.writer import LogWriter

    writers = [LogWriter(folder, partition) for partition in range(partitions)]
    for batch, commit, partition in hourly_batches(day, rows, partitions, seed):
        writers[partition].append(batch, commit)


def publish_day(
    topic: Topic, day: datetime, rows: int, *, seed: int, message_rows: int = 1_000
) -> None:
    from forebay.datatasks.sources.kafka.producer import publish_batches

    pieces = (
        (batch.slice(first, message_rows), commit, partition)
        for batch, commit, partition in hourly_batches(day, rows, 2, seed)
        for first in range(0, batch.num_rows, message_rows)
    )
    publish_batches(topic.bootstrap, topic.name, pieces)


def ads_project(
    root: Path,
    *,
    days: int = 1,
    rows: int = 4_000,
    pipeline: dict[str, Any] | None = None,
    topic: Topic | None = None,
) -> Project:
    """`days` windows of `rows` batch and `rows` stream rows each; the stream is a log, or a
    topic with two partitions that is there already."""
    project = declared_project(root, pipeline, topic=topic)
    for day in range(days):
        write_history(project.files, FIRST_DAY + (day - 1) * DAY, rows, seed=100 + day - 1)
        if topic is None:
            write_log(project.log, FIRST_DAY + day * DAY, rows, seed=100 + day)
        else:
            publish_day(topic, FIRST_DAY + day * DAY, rows, seed=100 + day)
    return project
