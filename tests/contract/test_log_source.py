"""The kind `log` passes the contract of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from support.parquet_files import bad_batches, rot

from forebay.datatasks.sources.log.writer import LogWriter
from forebay.testing.source_data import Batch, rows
from forebay.testing.source_suite import (
    BadRowSuite,
    DamageSuite,
    DescribesSuite,
    MissingColumnSuite,
    ReplanSuite,
    SourceSuite,
)


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
        first = next(iter(sorted((place / "log/0").glob("*.arrow"))))
        content = first.read_bytes()
        rot(first, content[:300] + bytes(len(content) - 300))

    def replace(self, place: Path) -> None:
        segment = min((place / "log/0").glob("*.arrow"))
        other = rows(0, range(200, 240))
        new = segment.with_suffix(".new")
        with pa.OSFile(str(new), "wb") as sink, pa.ipc.new_file(sink, other.schema) as writer:
            writer.write_table(other, max_chunksize=10)
        new.rename(segment)
