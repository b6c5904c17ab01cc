"""The kind `memory` passes the contract of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from forebay.datatasks.sources.memory.source import MEMORY
from forebay.testing.source_data import Batch
from forebay.testing.source_suite import DescribesSuite, MissingColumnSuite, SourceSuite


class TestMemorySource(SourceSuite, DescribesSuite, MissingColumnSuite):
    kind = "memory"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        key = str(place)
        tables = [batch.table for batch in batches]
        if key in MEMORY:
            tables.insert(0, MEMORY[key])
        MEMORY[key] = pa.concat_tables(tables)
        return {"table": key}
