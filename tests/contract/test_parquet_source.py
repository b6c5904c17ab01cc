"""The kind `parquet` passes the contract of sources: cut by column, by path, and by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from support.parquet_files import bad_batches, damage_file, write_table

from forebay.testing.source_data import Batch, rows
from forebay.testing.source_suite import (
    BadRowSuite,
    DamageSuite,
    DescribesSuite,
    MissingColumnSuite,
    ReplanSuite,
    SourceSuite,
)


def add_parts(folder: Path, batches: list[Batch]) -> None:
    there = len(list(folder.glob("*.parquet")))
    for index, each in enumerate(batches):
        write_table(folder / f"part-{there + index:03d}.parquet", each.table)


def replace_table(path: Path, row_group_size: int = 9) -> None:
    """Other rows of hour 0 under the same name, at once."""
    write_table(path.with_suffix(".new"), rows(0, range(200, 240)), row_group_size)
    path.with_suffix(".new").rename(path)


class TestOneFilePerBatch(
    SourceSuite, DescribesSuite, MissingColumnSuite, BadRowSuite, DamageSuite, ReplanSuite
):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        add_parts(place / "data", batches)
        return {"path": "data"}

    def bad_batches(self) -> list[Batch]:
        return bad_batches()

    def damage(self, place: Path) -> None:
        damage_file(place / "data/part-000.parquet")

    def replace(self, place: Path) -> None:
        replace_table(place / "data/part-000.parquet")


class TestSmallTasksAndWideChunks(TestOneFilePerBatch):
    chunk_rows = 64


class TestRowGroupsThatCrossHours(SourceSuite, DescribesSuite, MissingColumnSuite):
    """All rows of all hours in one file, shuffled: every row group crosses every border."""

    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        table = pa.concat_tables([each.table for each in batches])
        order = np.random.default_rng(3).permutation(table.num_rows)
        there = len(list(place.glob("data/*.parquet")))
        write_table(place / f"data/{there}.parquet", table.take(pa.array(order)), 25)
        return {"path": "data/**/*.parquet"}


class TestHourInPath(
    SourceSuite, DescribesSuite, MissingColumnSuite, BadRowSuite, DamageSuite, ReplanSuite
):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            add_parts(place / each.published.strftime("data/date=%Y-%m-%d/hour=%H"), [each])
        return {"path": "data", "window_path": "date={date}/hour={hour}/*.parquet"}

    def bad_batches(self) -> list[Batch]:
        return bad_batches()

    def damage(self, place: Path) -> None:
        damage_file(min((place / "data").rglob("*.parquet")))

    def replace(self, place: Path) -> None:
        replace_table(min((place / "data").rglob("*.parquet")))


class TestHourInPathWithoutEventTime(TestHourInPath):
    def spec(self, options: dict[str, Any], **more: Any) -> Any:
        return super().spec(options, **{"event_time": None, **more})


class TestDayInPathCutByEventTime(SourceSuite, DescribesSuite):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        add_parts(place / batches[0].published.strftime("data/%Y/%m%d"), batches)
        return {"path": "data", "window_path": "{year}/{date:%m%d}/*.parquet"}


class TestBehindFsspec(SourceSuite, DescribesSuite, ReplanSuite):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        add_parts(place / "data", batches)
        return {"path": f"file://{place}/data"}

    def replace(self, place: Path) -> None:
        replace_table(place / "data/part-000.parquet")
