"""The kind `iceberg` passes the contract of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.iceberg_tables import CATALOG, TABLE, append
from support.parquet_files import rot, write_table

from forebay.testing.source_data import Batch, rows
from forebay.testing.source_suite import ChangeSuite, DamageSuite, DescribesSuite, SourceSuite


class TestIcebergTable(SourceSuite, DescribesSuite, DamageSuite, ChangeSuite):
    kind = "iceberg"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            append(place, each.table)
        return {"catalog": CATALOG, "table": TABLE}

    def damage(self, place: Path) -> None:
        oldest = min(place.glob("lake/**/*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        rot(oldest, b"PAR1 no more" + oldest.read_bytes()[12:-8] + b"all gone")

    def replace(self, place: Path) -> None:
        oldest = min(place.glob("lake/**/*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        write_table(oldest.with_suffix(".new"), rows(0, range(200, 240)))
        oldest.with_suffix(".new").rename(oldest)
