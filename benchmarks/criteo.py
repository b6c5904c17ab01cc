"""Generated rows and their YAML, in three shapes.

- `criteo`: a label, 13 floats, 26 ids, one list of ids.
- `numeric`: the label and the floats of these alone.
- `wide`: a label and 3,200 floats.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.record_files import WRITERS

DAY = datetime(2026, 3, 1, tzinfo=UTC)
FLOATS = [f"f{number}" for number in range(13)]
# Log-uniform ids with the cardinalities of the Criteo Kaggle set, capped at 2^20.
CARDINALITIES = [
    1460, 583, 1048576, 1048576, 305, 24, 12517, 633, 3, 93145, 5683, 1048576, 3194, 27, 14992,
    1048576, 10, 5652, 2173, 4, 1048576, 18, 15, 286181, 105, 142572,
]  # fmt: skip
IDS = [f"c{number}" for number in range(len(CARDINALITIES))]


class Shape(NamedTuple):
    """Which columns there are, and how many rows a row group and a minibatch have."""

    floats: list[str]
    ids: list[str]
    lists: list[str]
    group_rows: int = 32_768
    minibatch_rows: int = 8192


SHAPES = {
    "criteo": Shape(FLOATS, IDS, ["history"]),
    "numeric": Shape(FLOATS, [], []),
    "wide": Shape([f"f{number}" for number in range(3200)], [], [], 1024, 1024),
}


def rows(count: int, seed: int, shape: Shape = SHAPES["criteo"]) -> pa.Table:
    """`count` rows spread over one day, sorted by time."""
    random = np.random.default_rng(seed)
    at = np.sort(random.integers(0, 86_400_000_000, count)) + np.datetime64("2026-03-01", "us")
    columns: dict[str, Any] = {
        "event": np.arange(count, dtype=np.int64) + seed * 10**9,
        "at": pa.array(at, pa.timestamp("us", tz="UTC")),
        "label": (random.random(count) < 0.03).astype(np.int8),
    }
    for name in shape.floats:
        columns[name] = random.lognormal(0.0, 1.0, count).astype(np.float32)
    for name, cardinality in zip(shape.ids, CARDINALITIES, strict=False):
        columns[name] = np.exp(random.random(count) * np.log(cardinality)).astype(np.int64)
    for name in shape.lists:
        lengths = random.integers(1, 32, count)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values = np.exp(random.random(int(offsets[-1])) * np.log(100_000)).astype(np.int64)
        columns[name] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
    return pa.table(columns)


def write(
    root: Path,
    row_count: int,
    windows: int,
    files: int = 4,
    shape: Shape = SHAPES["criteo"],
    kind: str = "parquet",
) -> None:
    """Write `windows` equal days below root/data and the project that reads them."""
    for window in range(windows):
        folder = root / "data" / f"date={DAY.replace(day=1 + window):%Y-%m-%d}"
        folder.mkdir(parents=True)
        table = rows(row_count, window, shape)
        shift = pa.scalar(window * 86_400_000_000, pa.duration("us"))
        moved = pa.compute.add(table.column("at"), shift)
        table = table.set_column(table.schema.get_field_index("at"), "at", moved)
        step = -(-row_count // files)
        for number in range(files):
            part, path = table.slice(number * step, step), folder / f"part-{number}.{kind}"
            if kind in WRITERS:
                path.write_bytes(WRITERS[kind](part))
                continue
            pq.write_table(part, path, compression="snappy", row_group_size=shape.group_rows)
    for folder_name, name, value in (
        ("sources", "impressions", _source(shape, kind)),
        ("pipelines", "criteo", _pipeline(shape)),
    ):
        path = root / "config" / folder_name / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(value, sort_keys=False))


def _source(shape: Shape, kind: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "options": {"path": "data", "window_path": f"date={{date}}/*.{kind}"},
        "columns": {
            "event": "int",
            "at": "timestamp",
            "label": "int",
            **dict.fromkeys(shape.floats, "float"),
            **dict.fromkeys(shape.ids, "int"),
            **dict.fromkeys(shape.lists, "list<int>"),
        },
        "event_time": "at",
    }


def _pipeline(shape: Shape) -> dict[str, Any]:
    features: dict[str, Any] = {
        name: {"encode": "numeric", "transform": "log1p"} for name in shape.floats
    }
    for name, cardinality in zip(shape.ids, CARDINALITIES, strict=False):
        buckets = min(cardinality + 2, 100_000)
        features[name] = {"encode": "hash", "buckets": buckets, "dimension": 8}
    for name in shape.lists:
        features[name] = {"encode": "hash", "buckets": 100_000, "dimension": 8}
    return {
        "dataset": {
            "start": "2026-03-01",
            "event_id": "event",
            "label": {"column": "label"},
            "streams": {"all": {"sources": ["impressions"]}},
            "features": features,
        },
        "model": {"kind": "count"},
        "train": {"paradigm": "batch", "minibatch_rows": shape.minibatch_rows},
    }
