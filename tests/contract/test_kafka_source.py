"""The kind `kafka` passes the contract of sources, in each message format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
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
from forebay.testing.source_suite import (
    BadRowSuite,
    CommitsSuite,
    DescribesSuite,
    MissingColumnSuite,
    SourceSuite,
)

pytestmark = pytest.mark.kafka
PARTITIONS = 2
MICRO_BATCH = 9


def one_by_one(batches: list[Batch]) -> Iterator[tuple[dict[str, Any], datetime, int]]:
    """Rows with their times and partitions."""
    for each in batches:
        for number, row in enumerate(each.table.to_pylist()):
            yield row, each.published + timedelta(seconds=number), number % PARTITIONS


class _OnBroker(SourceSuite, DescribesSuite, CommitsSuite):
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

    # Numbers that are sent as texts, which no column of an Arrow table could hold beside others.
    spoiled: tuple[int, ...] = ()

    def sent(self, row: dict[str, Any]) -> dict[str, Any]:
        spoiled = row[NUMBER] in self.spoiled
        return row | {NUMBER: f"number {row[NUMBER]}"} if spoiled else row

    def send(self, batches: list[Batch]) -> None:
        rows = ((self.sent(row), at, partition) for row, at, partition in one_by_one(batches))
        publish_rows_json(self.bootstrap, self.topic, rows)

    def bad_batches(self) -> list[Batch]:
        self.spoiled = (11, 12)
        return [batch(0, range(30))]


class _OneByOne(_OnBroker, MissingColumnSuite):
    """Messages of a schema, framed or not: each is a row."""

    is_framed: ClassVar[bool]

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        writer, path, more = self.schema(place, 7 if self.is_framed else None)
        publish_rows(self.bootstrap, self.topic, one_by_one(batches), writer)
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
