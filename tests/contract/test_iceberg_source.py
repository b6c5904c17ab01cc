"""The kind `iceberg` passes the contract of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.iceberg_tables import CATALOG, TABLE, append

from forebay.testing.source_data import Batch
from forebay.testing.source_suite import DamageSuite, SourceSuite


class TestIcebergTable(SourceSuite, DamageSuite):
    kind = "iceberg"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for each in batches:
            append(place, each.table)
        return {"catalog": CATALOG, "table": TABLE}

    def damage(self, place: Path) -> None:
        oldest = min(place.glob("lake/**/*.parquet"), key=lambda path: path.stat().st_mtime_ns)
        oldest.write_bytes(b"PAR1 no more" + oldest.read_bytes()[12:-8] + b"gone")
