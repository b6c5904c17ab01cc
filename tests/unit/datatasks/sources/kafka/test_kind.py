"""Options of a topic that belong together, or exclude each other."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from forebay.datatasks.sources.kafka.kind import KafkaKind

BOTH = {"format": "avro", "schema_file": "a", "schema_ids": {1: "b"}}
BASE = {"bootstrap": "localhost:9092", "topic": "clicks"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"format": "json"},
        {"format": "avro", "schema_file": "a.avsc"},
        {"format": "avro", "schema_ids": {"7": "a.avsc", 8: "b.avsc"}},
        {"format": "protobuf", "schema_file": "a.desc", "message_type": "shop.Click"},
        {"format": "protobuf", "schema_ids": {0: "a.desc"}, "message_type": "shop.Click"},
    ],
)
def test_what_fits_together(options: dict[str, Any]) -> None:
    found = KafkaKind.Options.model_validate(BASE | options)
    assert all(isinstance(number, int) for number in found.schema_ids)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"format": "avro"}, "format avro needs `schema_file`, or `schema_ids`"),
        (BOTH, "format avro needs `schema_file`, or `schema_ids`"),
        ({"format": "json", "schema_file": "a"}, "format json takes no schema files"),
        ({"schema_ids": {1: "a"}}, "format arrow-ipc takes no schema files"),
        ({"format": "protobuf", "schema_file": "a"}, "`message_type` belongs to format protobuf"),
        ({"format": "json", "message_type": "a"}, "`message_type` belongs to format protobuf"),
        ({"format": "avro", "schema_ids": {-1: "a"}}, "greater than or equal to 0"),
        ({"format": "avro", "schema_ids": {2**32: "a"}}, "less than 4294967296"),
    ],
)
def test_what_does_not(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        KafkaKind.Options.model_validate(BASE | options)
