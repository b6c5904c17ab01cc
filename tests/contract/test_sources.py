"""Each kind of source but `kafka`, which needs a broker, passes the contract of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from support.iceberg_tables import CATALOG, TABLE, append
from support.parquet_files import bad_batches, damage_file, rot, write_table
from support.record_files import WRITERS, compressed, csv_rows, json_rows

from forebay.datatasks.sources.log.writer import LogWriter
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.testing.source_data import NUMBER, Batch, batch, rows
from forebay.testing.source_suite import (
    BadRowSuite,
    ChangeSuite,
    DamageSuite,
    DescribesSuite,
    MissingColumnSuite,
    ReplanSuite,
    SourceSuite,
)


class TestMemorySource(SourceSuite, DescribesSuite, MissingColumnSuite):
    kind = "memory"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        key = str(place)
        tables = [batch.table for batch in batches]
        if key in MEMORY:
            tables.insert(0, MEMORY[key])
        MEMORY[key] = pa.concat_tables(tables)
        return {"table": key}


class TestLogSource(
    SourceSuite, DescribesSuite, MissingColumnSuite, BadRowSuite, DamageSuite, ReplanSuite
):
    kind = "log"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for index, each in enumerate(batches):
            LogWriter(place / "log", index % 2).append(each.table, each.published)
        return {"path": "log"}

    def bad_batches(self) -> list[Batch]:
        return bad_batches()

    def damage(self, place: Path) -> None:
        first = min((place / "log/0").glob("*.arrow"))
        content = first.read_bytes()
        rot(first, content[:300] + bytes(len(content) - 300))

    def replace(self, place: Path) -> None:
        segment = min((place / "log/0").glob("*.arrow"))
        other = rows(0, range(200, 240))
        new = segment.with_suffix(".new")
        with pa.OSFile(str(new), "wb") as sink, pa.ipc.new_file(sink, other.schema) as writer:
            writer.write_table(other, max_chunksize=10)
        new.rename(segment)


def replace_table(path: Path) -> None:
    """Other rows of hour 0 under the same name, at once."""
    write_table(path.with_suffix(".new"), rows(0, range(200, 240)))
    path.with_suffix(".new").rename(path)


class TestIcebergTable(SourceSuite, DescribesSuite, DamageSuite, ChangeSuite):
    kind = "iceberg"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            append(place, each.table)
        return {"catalog": CATALOG, "table": TABLE}

    def oldest(self, place: Path) -> Path:
        return min(place.glob("lake/**/*.parquet"), key=lambda path: path.stat().st_mtime_ns)

    def damage(self, place: Path) -> None:
        path = self.oldest(place)
        rot(path, b"PAR1 no more" + path.read_bytes()[12:-8] + b"all gone")

    def replace(self, place: Path) -> None:
        replace_table(self.oldest(place))


def add_parts(folder: Path, batches: list[Batch]) -> None:
    there = len(list(folder.glob("*.parquet")))
    for index, each in enumerate(batches):
        write_table(folder / f"part-{there + index:03d}.parquet", each.table)


class ParquetFiles(SourceSuite, DescribesSuite):
    """One file for each batch."""

    kind = "parquet"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        add_parts(place / "data", batches)
        return {"path": "data"}

    def bad_batches(self) -> list[Batch]:
        return bad_batches()

    def damage(self, place: Path) -> None:
        damage_file(min((place / "data").rglob("*.parquet")))

    def replace(self, place: Path) -> None:
        replace_table(min((place / "data").rglob("*.parquet")))


class TestOneParquetFilePerBatch(
    ParquetFiles, MissingColumnSuite, BadRowSuite, DamageSuite, ReplanSuite
):
    pass


class TestSmallTasksAndWideChunks(TestOneParquetFilePerBatch):
    chunk_rows = 64


class TestRowGroupsThatCrossHours(ParquetFiles, MissingColumnSuite):
    """All rows of all hours in one file, shuffled: every row group crosses every border."""

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        table = pa.concat_tables([each.table for each in batches])
        order = np.random.default_rng(3).permutation(table.num_rows)
        there = len(list(place.glob("data/*.parquet")))
        write_table(place / f"data/{there}.parquet", table.take(pa.array(order)), 25)
        return {"path": "data/**/*.parquet"}


class TestHourInPath(TestOneParquetFilePerBatch):
    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            add_parts(place / each.published.strftime("data/date=%Y-%m-%d/hour=%H"), [each])
        return {"path": "data", "window_path": "date={date}/hour={hour}/*.parquet"}


class TestHourInPathWithoutEventTime(TestHourInPath):
    def spec(self, options: dict[str, Any], **more: Any) -> Any:
        return super().spec(options, **{"event_time": None, **more})


class TestDayInPathCutByEventTime(ParquetFiles):
    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        add_parts(place / batches[0].published.strftime("data/%Y/%m%d"), batches)
        return {"path": "data", "window_path": "{year}/{date:%m%d}/*.parquet"}


class TestBehindFsspec(ParquetFiles, ReplanSuite):
    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        super().publish(place, batches)
        return {"path": f"file://{place}/data"}


class RecordFiles(SourceSuite, DescribesSuite, BadRowSuite, DamageSuite, ReplanSuite):
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


class TestJson(RecordFiles):
    kind = "json"


class TestJsonInGzip(TestJson):
    ending = ".gz"


class TestJsonByHour(TestJson):
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


class TestCsv(RecordFiles, MissingColumnSuite):
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


class TestTfrecord(RecordFiles):
    kind = "tfrecord"


class TestTfrecordInGzip(TestTfrecord):
    ending = ".gz"
