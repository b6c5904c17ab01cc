"""The kinds `json`, `csv` and `tfrecord` pass the contract of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from support.parquet_files import damage_file
from support.record_files import WRITERS, compressed, csv_rows, json_rows

from forebay.testing.source_data import NUMBER, Batch, batch, rows
from forebay.testing.source_suite import (
    BadRowSuite,
    DamageSuite,
    DescribesSuite,
    MissingColumnSuite,
    ReplanSuite,
    SourceSuite,
)


class Files(SourceSuite, DescribesSuite, BadRowSuite, DamageSuite, ReplanSuite):
    """One file for each batch."""

    ending = ""

    def stored(self, table: pa.Table) -> bytes:
        return compressed(WRITERS[self.kind](table), self.ending)

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        (place / "data").mkdir(exist_ok=True)
        there = len(list((place / "data").iterdir()))
        for number, each in enumerate(batches, there):
            path = place / f"data/part-{number:03d}.{self.kind}{self.ending}"
            path.write_bytes(self.stored(each.table))
        return {"path": "data"}

    def bad_batches(self) -> list[Batch]:
        good = batch(0, range(30))
        numbers = pa.array([f"no {n}" if n in {11, 12} else str(n) for n in range(30)])
        return [Batch(good.published, good.table.set_column(0, NUMBER, numbers))]  # see `_text`

    def damage(self, place: Path) -> None:
        damage_file(min((place / "data").rglob("part-*")))

    def replace(self, place: Path) -> None:
        path = min((place / "data").rglob("part-*"))
        path.with_suffix(".new").write_bytes(self.stored(rows(0, range(200, 240))))
        path.with_suffix(".new").rename(path)


class TestJson(Files):
    kind = "json"


class TestJsonInGzip(Files):
    kind = "json"
    ending = ".gz"


class TestJsonByHour(Files):
    kind = "json"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            folder = place / each.published.strftime("data/date=%Y-%m-%d/hour=%H")
            folder.mkdir(parents=True, exist_ok=True)
            number = len(list(folder.iterdir()))
            (folder / f"part-{number}.json").write_bytes(self.stored(each.table))
        return {"path": "data", "window_path": "date={date}/hour={hour}/*.json"}


class TestJsonAllHoursInOneFile(SourceSuite):
    """Shuffled: each file crosses every border."""

    kind = "json"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        table = pa.concat_tables([each.table for each in batches])
        (place / "data").mkdir(exist_ok=True)
        there = len(list((place / "data").iterdir()))
        order = pa.array([n * 37 % table.num_rows for n in range(table.num_rows)])
        (place / f"data/{there}.json").write_bytes(json_rows(table.take(order)))
        return {"path": "data"}


class TestCsv(Files, MissingColumnSuite):
    kind = "csv"

    def held(self, table: pa.Table) -> pa.Table:
        """An empty list is an empty field, and that is a null."""
        for index, field in enumerate(table.schema):
            if pa.types.is_list(field.type):
                values = [each or None for each in table[field.name].to_pylist()]
                table = table.set_column(index, field, pa.array(values, field.type))
        return table


class TestCsvWithoutHeader(TestCsv):
    ending = ".zst"

    def stored(self, table: pa.Table) -> bytes:
        return compressed(csv_rows(table, header=False, delimiter=";"), self.ending)

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        names = batches[0].table.column_names
        return super().publish(place, batches) | {"names": names, "delimiter": ";"}


class TestTfrecord(Files):
    kind = "tfrecord"


class TestTfrecordInGzip(Files):
    kind = "tfrecord"
    ending = ".gz"
