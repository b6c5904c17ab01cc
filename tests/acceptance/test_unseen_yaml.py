"""A stranger's own configuration: other names, hourly windows, every column type, polarity."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import independent
from support.projects import Project

START = datetime(2025, 7, 1, 22, tzinfo=UTC)
HOURS = 4
ROWS = 500


def orders(hour: datetime, rows: int, more_columns: int) -> pa.Table:
    random = np.random.default_rng(int(hour.timestamp()))
    seconds = np.sort(random.integers(0, 3_600_000_000, rows))
    start = np.datetime64(hour.replace(tzinfo=None), "us")
    country = random.choice(["DE", "FR", "日本", "", "é"], rows)
    columns = {
        "order": pa.array([f"o-{hour:%d%H}-{row}" for row in range(rows)]),
        "placed": pa.array(start + seconds, pa.timestamp("ns")),
        "country": pa.array(country).dictionary_encode(),
        "items": pa.array(random.integers(1, 9, rows), pa.int16()),
        "total": pa.array(random.random(rows).astype(np.float32)),
        "gift": pa.array(random.random(rows) < 0.2),
        "codes": pa.array([list(range(row % 3)) for row in range(rows)], pa.list_(pa.int32())),
        "nothing": pa.nulls(rows),
        "kept": pa.array(np.where(random.random(rows) < 0.7, "yes", "no")),
    }
    for number in range(more_columns):
        columns[f"x{number}"] = pa.array(random.random(rows))
    return pa.table(columns)


def make(tmp_path: Path, *, more_columns: int = 0, model: str = "count") -> Project:
    project = Project(tmp_path)
    lake = tmp_path / "lake" / "orders"
    lake.mkdir(parents=True)
    for hour in range(HOURS):
        table = orders(START + timedelta(hours=hour), ROWS, more_columns)
        pq.write_table(table, lake / f"{hour}.parquet", row_group_size=100)
    names = [f"x{number}" for number in range(more_columns)]
    project.write_source(
        "orders_lake",
        {
            "kind": "parquet",
            "options": {"path": "lake/orders"},
            "columns": {
                "order": "string",
                "placed": "timestamp",
                "country": "string",
                "items": "int",
                "total": "float",
                "gift": "bool",
                "codes": "list<int>",
                "nothing": "string",
                "kept": "string",
                **dict.fromkeys(names, "float"),
            },
            "event_time": "placed",
        },
    )
    project.pipeline = {
        "dataset": {
            "window": "1h",
            "start": "2025-07-01T22:00:00Z",
            "event_id": ["order", "country"],
            "label": {"column": "kept", "positive": "no"},
            "streams": {"all": {"sources": ["orders_lake"]}},
            "features": {
                "country": {"encode": "vocabulary", "values": ["DE", "FR"], "dimension": 4},
                "items": {"encode": "hash", "buckets": 16},
                "total": {"encode": "bucketise", "boundaries": [0.2, 0.5]},
                "gift": {"encode": "hash", "buckets": 3},
                "codes": {"encode": "hash", "buckets": 8},
                "nothing": {"encode": "hash", "buckets": 8},
                "hour": {"column": "placed", "part": "hour", "encode": "hash", "buckets": 25},
                "pair": {"encode": "cross", "columns": ["country", "items"], "buckets": 64},
                **{name: {"encode": "numeric"} for name in names},
            },
        },
        "model": {"kind": model},
        "train": {"paradigm": "batch"},
    }
    project.write_pipeline()
    (project.root / "config").rename(project.root / "our")
    return project


def run(project: Project) -> dict[str, Any]:
    return project.run("2025-07-01T22", "2025-07-02T01", "--config", "our")


def test_hourly_windows_of_300_columns_over_midnight(tmp_path: Path) -> None:
    project = make(tmp_path, more_columns=291)
    checked = project.forebay("check", "--config", "our")
    assert "no problems" in checked.stdout
    summary = run(project)
    windows = ["2025-07-01T22", "2025-07-01T23", "2025-07-02T00", "2025-07-02T01"]
    assert [window["window"] for window in summary["windows"]] == windows
    for window in summary["windows"]:
        assert window["sources"]["orders_lake"]["trained_rows"] == ROWS
    lake = project.root / "lake" / "orders"
    assert summary["seen"]["orders_lake"] == independent.parquet_sums(lake)


@pytest.mark.usefixtures("jobs_here")
def test_three_columns_are_enough(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = pa.table({"k": [1, 2, 3], "ok": [True, False, True], "v": [0.5, None, 2.0]})
    (tmp_path / "in" / "day=2026-01-05").mkdir(parents=True)
    pq.write_table(table, tmp_path / "in" / "day=2026-01-05" / "a.parquet")
    options = {"path": "in", "window_path": "day={date}/*.parquet"}
    columns = {"k": "int", "ok": "bool", "v": "float"}
    project.write_source("tiny", {"kind": "parquet", "options": options, "columns": columns})
    project.pipeline = {
        "dataset": {
            "start": "2026-01-05",
            "event_id": "k",
            "label": {"column": "ok", "positive": False},
            "streams": {"all": {"sources": ["tiny"]}},
            "features": {"v": {"encode": "numeric"}},
        },
        "model": {"kind": "count"},
        "train": {"paradigm": "batch"},
    }
    project.write_pipeline()
    summary = project.run("2026-01-05", "2026-01-05")
    assert summary["seen"] == {"tiny": independent.parquet_sums(tmp_path / "in")}


@pytest.mark.usefixtures("jobs_here")
def test_towers_learn_from_a_strangers_yaml(tmp_path: Path) -> None:
    project = make(tmp_path, model="towers")
    summary = run(project)
    assert summary["rows_agree"]
    for window in summary["windows"]:  # without a stream, rows of history are judged
        assert window["metrics"]["batch"]["joined_rows"] == ROWS
    assert Path(summary["model"], "saved_model.pb").is_file()
    row = '{"country": "DE", "items": 3, "total": 0.4, "gift": null, "codes": [1, 2], "nothing": null, "placed": "2025-07-01T22:10:00Z"}'  # noqa: E501
    scored = project.forebay("score", summary["model"], "--row", row, "--output", "json")
    assert "score" in scored.stdout
