"""The kind `kafka` passes the contract of sources, in each message format."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from support.written_messages import (
    MESSAGE_TYPE,
    avro_file,
    avro_schema,
    descriptor_set,
    protobuf_fields,
)

from forebay.datatasks.sources.kafka.producer import (
    avro_writer,
    protobuf_writer,
    publish_batches,
    publish_rows,
    publish_rows_json,
)
from forebay.testing.source_data import COLUMNS, NUMBER, Batch, batch
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
        return self.options()

    def options(self) -> dict[str, Any]:
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


class _OneByOne(_OnBroker, MissingColumnSuite):
    """Messages of a schema, framed or not: each is a row."""

    is_framed: ClassVar[bool]

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        writer, path, more = self.schema(place, 7 if self.is_framed else None)
        publish_rows(
            self.bootstrap,
            self.topic,
            (
                (row, each.published + timedelta(seconds=number), number % PARTITIONS)
                for each in batches
                for number, row in enumerate(each.table.to_pylist())
            ),
            writer,
        )
        files = {"schema_ids": {7: path.name}} if self.is_framed else {"schema_file": path.name}
        return {**self.options(), **files, **more}

    def schema(
        self, place: Path, number: int | None
    ) -> tuple[Callable[[Any], bytes], Path, dict[str, str]]:
        raise NotImplementedError


class TestAvroMessages(_OneByOne):
    format = "avro"
    is_framed = True

    def schema(
        self, place: Path, number: int | None
    ) -> tuple[Callable[[Any], bytes], Path, dict[str, str]]:
        path = avro_file(place / "row.avsc", avro_schema(COLUMNS))
        return avro_writer(path, number), path, {}


class TestProtobufMessages(_OneByOne):
    format = "protobuf"
    is_framed = False

    def schema(
        self, place: Path, number: int | None
    ) -> tuple[Callable[[Any], bytes], Path, dict[str, str]]:
        path = place / "row.desc"
        path.write_bytes(descriptor_set(protobuf_fields(COLUMNS)))
        return protobuf_writer(path, MESSAGE_TYPE, number), path, {"message_type": MESSAGE_TYPE}

    def held(self, table: pa.Table) -> pa.Table:
        """A repeated field that is not there has no values."""
        for place, column in enumerate(table.columns):
            if pa.types.is_list(column.type):
                filled = pa.array([each or [] for each in column.to_pylist()], column.type)
                table = table.set_column(place, table.schema.names[place], filled)
        return table


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
