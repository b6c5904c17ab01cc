"""Kind log passes the source suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.parquet_files import unreadable_numbers

from forebay.datatasks.sources.log.writer import LogWriter
from forebay.testing.source_data import Batch, batch
from forebay.testing.source_suite import BadRowSuite, DamageSuite, MissingColumnSuite, SourceSuite


class TestLogSource(SourceSuite, MissingColumnSuite, BadRowSuite, DamageSuite):
    kind = "log"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        for index, each in enumerate(batches):
            LogWriter(place / "log", index % 2).append(each.table, each.published)
        return {"path": "log"}

    def bad_batches(self) -> list[Batch]:
        good = batch(0, range(30))
        return [Batch(good.published, unreadable_numbers(good.table, {11, 12}))]

    def damage(self, place: Path) -> None:
        first = next(iter(sorted((place / "log/0").glob("*.arrow"))))
        first.write_bytes(first.read_bytes()[:300])
