"""Kind parquet passes the source suite: cut by column, by path, and by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.testing.source_data import NUMBER, Batch, batch
from forebay.testing.source_suite import (
    BadRowSuite,
    DamageSuite,
    MissingColumnSuite,
    SourceSuite,
)


def write_table(path: Path, table: pa.Table, row_group_size: int = 9) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group_size)


def unreadable_numbers(table: pa.Table, bad: set[int]) -> pa.Table:
    """NUMBER as unsigned integers; those of `bad` do not fit a signed one."""
    values = [2**63 + n if n in bad else n for n in table[NUMBER].to_pylist()]
    index = table.schema.get_field_index(NUMBER)
    return table.set_column(index, NUMBER, pa.array(values, pa.uint64()))


def damage_file(path: Path) -> None:
    """Overwrite the first bytes of data; the footer stays whole."""
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)


class TestOneFilePerBatch(SourceSuite, MissingColumnSuite, BadRowSuite, DamageSuite):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        there = len(list(place.glob("data/*.parquet")))
        for index, each in enumerate(batches):
            write_table(place / f"data/part-{there + index:03d}.parquet", each.table)
        return {"path": "data"}

    def bad_batches(self) -> list[Batch]:
        good = batch(0, range(30))
        return [Batch(good.published, unreadable_numbers(good.table, {11, 12}))]

    def damage(self, place: Path) -> None:
        damage_file(place / "data/part-000.parquet")


class TestSmallTasksAndWideChunks(TestOneFilePerBatch):
    chunk_rows = 64


class TestRowGroupsThatCrossHours(SourceSuite, MissingColumnSuite):
    """All rows of all hours in one file, shuffled: every row group crosses every border."""

    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        table = pa.concat_tables([each.table for each in batches])
        order = np.random.default_rng(3).permutation(table.num_rows)
        there = len(list(place.glob("data/*.parquet")))
        write_table(place / f"data/{there}.parquet", table.take(pa.array(order)), 25)
        return {"path": "data/**/*.parquet"}


class TestHourInPath(SourceSuite, MissingColumnSuite, BadRowSuite, DamageSuite):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            folder = each.published.strftime("data/date=%Y-%m-%d/hour=%H")
            there = len(list((place / folder).glob("*.parquet")))
            write_table(place / folder / f"{there}.parquet", each.table)
        return {"path": "data", "window_path": "date={date}/hour={hour}/*.parquet"}

    def bad_batches(self) -> list[Batch]:
        good = batch(0, range(30))
        return [Batch(good.published, unreadable_numbers(good.table, {11, 12}))]

    def damage(self, place: Path) -> None:
        damage_file(next(iter(sorted((place / "data").rglob("*.parquet")))))


class TestHourInPathWithoutEventTime(TestHourInPath):
    def spec(self, options: dict[str, Any], **more: Any) -> Any:
        return super().spec(options, **{"event_time": None, **more})


class TestDayInPathCutByEventTime(SourceSuite):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        folder = place / batches[0].published.strftime("data/%Y/%m%d")
        there = len(list(folder.glob("*.parquet")))
        for index, each in enumerate(batches):
            write_table(folder / f"{there + index}.parquet", each.table)
        return {"path": "data", "window_path": "{year}/{date:%m%d}/*.parquet"}


class TestBehindFsspec(SourceSuite):
    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        there = len(list(place.glob("data/*.parquet")))
        for index, each in enumerate(batches):
            write_table(place / f"data/part-{there + index:03d}.parquet", each.table)
        return {"path": f"file://{place}/data"}
