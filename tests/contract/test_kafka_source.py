"""The kind `kafka` passes the contract of sources, in both message formats."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from forebay.datatasks.sources.kafka.producer import publish_batches, publish_rows_json
from forebay.testing.source_data import NUMBER, Batch, batch
from forebay.testing.source_suite import BadRowSuite, MissingColumnSuite, SourceSuite

pytestmark = pytest.mark.kafka
PARTITIONS = 2
MICRO_BATCH = 9


class _OnBroker(SourceSuite):
    kind = "kafka"
    format: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _broker(self, kafka_bootstrap: str, new_topic: Callable[..., str]) -> None:
        self.bootstrap = kafka_bootstrap
        self.topic = new_topic(PARTITIONS)

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        self.send(batches)
        return {"bootstrap": self.bootstrap, "topic": self.topic, "format": self.format}

    def send(self, batches: list[Batch]) -> None:
        raise NotImplementedError


class TestArrowMessages(_OnBroker, MissingColumnSuite, BadRowSuite):
    format = "arrow-ipc"

    def send(self, batches: list[Batch]) -> None:
        publish_batches(
            self.bootstrap,
            self.topic,
            (
                (
                    each.table.slice(first, MICRO_BATCH),
                    each.published + timedelta(seconds=first),
                    first // MICRO_BATCH % PARTITIONS,
                )
                for each in batches
                for first in range(0, each.table.num_rows, MICRO_BATCH)
            ),
        )

    def bad_batches(self) -> list[Batch]:
        good = batch(0, range(30))
        numbers = [n + 0.5 if n in {11, 12} else float(n) for n in range(30)]
        table = good.table.set_column(0, NUMBER, pa.array(numbers))
        return [Batch(good.published, table)]


class TestJsonMessages(_OnBroker, BadRowSuite):
    format = "json"

    def send(self, batches: list[Batch]) -> None:
        publish_rows_json(
            self.bootstrap,
            self.topic,
            (
                (row, each.published + timedelta(seconds=number), number % PARTITIONS)
                for each in batches
                for number, row in enumerate(each.table.to_pylist())
            ),
        )

    def bad_batches(self) -> list[Batch]:
        good = batch(0, range(30))
        numbers = [f"number {n}" if n in {11, 12} else n for n in range(30)]
        rows = [
            {**row, NUMBER: number}
            for row, number in zip(good.table.to_pylist(), numbers, strict=True)
        ]
        return [_Rows(good.published, rows)]


class _Rows(Batch):
    """A batch whose rows no Arrow table could hold."""

    def __init__(self, published: Any, rows: list[dict[str, Any]]) -> None:
        object.__setattr__(self, "published", published)
        object.__setattr__(self, "table", _Listed(rows))


class _Listed:
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.rows
