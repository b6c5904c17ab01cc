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

    def options(self) -> dict[str, Any]:
        return {"bootstrap": self.bootstrap, "topic": self.topic, "format": self.format}

    def one_by_one(
        self, batches: list[Batch], writer: Callable[[Any], bytes], **more: Any
    ) -> dict[str, Any]:
        """Send each row as a message of its own."""
        publish_rows(self.bootstrap, self.topic, one_by_one(batches), writer)
        return self.options() | more


class TestArrowMessages(_OnBroker, MissingColumnSuite, BadRowSuite):
    format = "arrow-ipc"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
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
        return self.options()

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

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        rows = ((self.sent(row), at, partition) for row, at, partition in one_by_one(batches))
        publish_rows_json(self.bootstrap, self.topic, rows)
        return self.options()

    def bad_batches(self) -> list[Batch]:
        self.spoiled = (11, 12)
        return [batch(0, range(30))]


class TestAvroMessages(_OnBroker, MissingColumnSuite):
    format = "avro"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        path = avro_file(place / "row.avsc", avro_schema(COLUMNS))
        return self.one_by_one(batches, avro_writer(path, 7), schema_ids={7: path.name})


class TestProtobufMessages(_OnBroker, MissingColumnSuite):
    """Not framed, unlike those of Avro."""

    format = "protobuf"

    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        path = place / "row.desc"
        path.write_bytes(descriptor_set(protobuf_fields(COLUMNS)))
        writer = protobuf_writer(path, MESSAGE_TYPE, None)
        schema = {"schema_file": path.name, "message_type": MESSAGE_TYPE}
        return self.one_by_one(batches, writer, **schema)

    def held(self, table: pa.Table) -> pa.Table:
        """A repeated field that is not there has no values."""
        for place, column in enumerate(table.columns):
            if pa.types.is_list(column.type):
                filled = pa.array([each or [] for each in column.to_pylist()], column.type)
                table = table.set_column(place, table.schema.names[place], filled)
        return table
