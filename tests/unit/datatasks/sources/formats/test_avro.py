"""Format `avro`: values of every type, framing, schemas that are refused, and broken messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.message_columns import COLUMNS, NOTHING, ROW, decode
from support.written_messages import avro_file, avro_schema

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.avro_rows import AvroReader
from forebay.datatasks.sources.formats.decoder import Decoder, MessageLimits, Written
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.formats.written_rows import framed
from forebay.datatasks.sources.kafka.producer import avro_writer
from forebay.errors import ConfigError


def decoder_of(folder: Path, schema: Any, columns: dict[str, ColumnType], **more: Any) -> Decoder:
    path = avro_file(folder / "row.avsc", schema)
    return decoder_named("avro", list(columns), columns, written=Written({None: path}), **more)


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "Row", "fields": listed}


def plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Without logical types, so that numbers are written as they are."""
    found: dict[str, Any] = AvroReader(json.dumps(schema).encode(), {}).plain
    return {key: value for key, value in found.items() if not key.startswith("__")}


def test_values_of_every_type_and_their_nulls(tmp_path: Path) -> None:
    schema = avro_schema(COLUMNS)
    write = avro_writer(avro_file(tmp_path / "row.avsc", schema))
    reader = decoder_of(tmp_path, schema, COLUMNS)
    decoded = decode(reader, [write(ROW), None, write(NOTHING), write(ROW)])
    assert decoded.batch.to_pylist() == [ROW, NOTHING, ROW]
    assert decoded.messages.tolist() == [0, 2, 3]
    assert decoded.bad_messages == {1: "the message has no value"}
    some = decoder_of(tmp_path, schema, {"s": ColumnType.STRING, "i": ColumnType.INT})
    assert decode(some, [write(ROW)]).batch.to_pylist() == [{"s": "wörd\n", "i": -(2**63)}]
    assert decode(decoder_of(tmp_path, schema, {}), [write(ROW)] * 3).batch.num_rows == 3
    assert decode(some, []).batch.num_rows == 0
    assert reader.described(write(ROW))["t"] == "null | timestamp-micros"
    assert reader.described(b"") == {}


@pytest.mark.parametrize(
    ("kind", "value", "declared", "wanted"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, 1500, "timestamp", 1_500_000),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, 7, "timestamp", 7),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 7999, "timestamp", 7),
        ("long", 1500, "timestamp", 1_500_000),
        ("string", "1970-01-01T00:00:01Z", "timestamp", 1_000_000),
        ("int", 5, "float", 5.0),
        (["int", "double"], 2**60 + 1, "float", float(2**60)),
        ({"type": "array", "items": ["long", "float"]}, [1, 0.5], "list<float>", [1.0, 0.5]),
        ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, "b", "string", "b"),
        ({"type": "int", "logicalType": "date"}, 5, "int", 5),
        ("null", None, "string", None),
    ],
)
def test_stored_types(tmp_path: Path, kind: Any, value: Any, declared: str, wanted: Any) -> None:
    schema = record(("x", "long"), ("a", kind), ("y", "string"))
    write = avro_writer(avro_file(tmp_path / "row.avsc", plain(schema)))
    reader = decoder_of(tmp_path, schema, {"a": ColumnType(declared)})
    found = decode(reader, [write({"x": 1, "a": value, "y": "z"})]).batch.column(0)
    if declared == "timestamp":
        found = found.cast("int64")
    assert found.to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("kind", "declared", "says"),
    [
        ("bytes", "string", "column 'a' is stored as bytes, which cannot be read as string"),
        (["null", "int", "string"], "int", "stored as null | int | string, which cannot"),
        ({"type": "map", "values": "int"}, "list<int>", "stored as map<int>"),
        ({"type": "array", "items": "string"}, "list<int>", "stored as array<string>"),
        ("double", "int", "stored as double, which cannot be read as int"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "float", "decimal"),
    ],
)
def test_types_that_no_column_has(tmp_path: Path, kind: Any, declared: str, says: str) -> None:
    reader = decoder_of(tmp_path, record(("a", kind)), {"a": ColumnType(declared)})
    assert says in decode(reader, [b"\0"]).bad_messages[0]


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    reader = decoder_of(tmp_path, record(("price", "int")), {"prise": ColumnType.INT})
    (reason,) = decode(reader, [b"\2"]).bad_messages.values()
    assert "there is no column 'prise': did you mean 'price'?" in reason


def one_field(kind: Any) -> bytes:
    return json.dumps(record(("a", kind))).encode()


EMPTY: list[Any] = [
    *("null", {"type": "fixed", "name": "F", "size": 4}),
    {"type": "record", "name": "E", "fields": []},
]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        *((b"{", "not an Avro schema"), (b'"int"', "a row is a record")),
        *((b"[" * 100_000, "not an Avro schema"), (one_field("nothing"), "not an Avro schema")),
        (one_field(["null", "Row"]), "contains itself"),
        (None, "No such file"),
        *((one_field({"type": "array", "items": each}), "take no bytes") for each in EMPTY),
    ],
)
def test_schemas_that_are_not_read(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "row.avsc"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=says) as error:
        decoder_named("avro", [], {}, written=Written({None: path}))
    assert str(path) in str(error.value)


def test_framing_chooses_the_schema(tmp_path: Path) -> None:
    old = avro_file(tmp_path / "old.avsc", record(("i", "int")))
    new = avro_file(tmp_path / "new.avsc", record(("s", "string"), ("i", ["null", "long"])))
    reader = decoder_named("avro", ["i"], COLUMNS, written=Written({7: old, 4_000_000_000: new}))
    first = avro_writer(old, 7)({"i": 1})
    second = avro_writer(new, 4_000_000_000)({"s": "x", "i": 2})
    assert first[:5] == b"\0\0\0\0\x07"
    odd = framed(9, first[5:])
    decoded = decode(reader, [second, first, odd, b"\1" + first[1:], b"\0", second, b""])
    assert decoded.batch.column(0).to_pylist() == [2, 1, 2]
    assert decoded.messages.tolist() == [0, 1, 5]
    assert decoded.bad_messages == {
        2: "its schema has id 9, and schema_ids has 7, 4000000000",
        3: "it does not begin with a zero byte and the id of its schema",
        4: "it does not begin with a zero byte and the id of its schema",
        6: "it does not begin with a zero byte and the id of its schema",
    }


def test_a_column_that_a_schema_has_not_yet_is_null_there(tmp_path: Path) -> None:
    old = avro_file(tmp_path / "old.avsc", record(("s", "string")))
    fields = [("s", "string"), ("i", "long"), ("lf", {"type": "array", "items": "double"})]
    new = avro_file(tmp_path / "new.avsc", record(*fields))
    bare = avro_file(tmp_path / "bare.avsc", record(("x", "long")))
    written = Written({7: old, 8: new, 9: bare})
    values: list[bytes | None] = [
        avro_writer(old, 7)({"s": "a"}),
        avro_writer(new, 8)({"s": "b", "i": 2, "lf": [0.5]}),
        avro_writer(bare, 9)({"x": 1}),
    ]
    decoded = decode(decoder_named("avro", ["i", "lf", "s"], COLUMNS, written=written), values)
    assert decoded.bad_messages == decoded.bad_rows == {}
    assert decoded.batch.to_pylist() == [
        {"i": None, "lf": None, "s": "a"},
        {"i": 2, "lf": [0.5], "s": "b"},
        {"i": None, "lf": None, "s": None},
    ]
    unknown = decode(decoder_named("avro", ["s", "t"], COLUMNS, written=written), values)
    assert all("there is no column 't'" in each for each in unknown.bad_messages.values())
    assert set(unknown.bad_messages) == {0, 1, 2}


@pytest.mark.guarantee(
    "an Avro or protobuf message claims lengths, counts or nesting that are not there, or a "
    "field in another wire type",
    "red with topic, partition and offset, or a dead letter by policy; a schema that would "
    "allow endless reading is refused",
)
def test_messages_that_are_no_record(tmp_path: Path) -> None:
    schema = record(
        ("s", "string"), ("e", {"type": "enum", "name": "E", "symbols": ["a"]}), ("f", "double")
    )
    write = avro_writer(avro_file(tmp_path / "row.avsc", schema))
    good = write({"s": "word", "e": "a", "f": 0.5})
    reader = decoder_of(tmp_path, schema, {"s": ColumnType.STRING})
    odd = {
        "nothing": b"",
        "cut": good[:-1],
        "cut in the text": good[:3],
        "more": good + b"\0",
        "a negative length": b"\1" + good[1:],
        "a huge length": b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + good[1:],
        "an endless number": b"\x80" * 1000,
        "no UTF-8": b"\x02\xff" + good[5:],
        "no symbol": good[:5] + b"\x08" + good[6:],
    }
    for value in odd.values():
        decoded = decode(reader, [good, value, good])
        assert decoded.batch.to_pylist() == [{"s": "word"}] * 2
        assert decoded.bad_messages[1].startswith("not a record of its schema: ")
        assert "BytesIO" not in decoded.bad_messages[1], "it has an address of this process"


def test_a_value_that_does_not_fit_is_a_bad_row(tmp_path: Path) -> None:
    schema = record(("t", {"type": "long", "logicalType": "timestamp-millis"}), ("i", "int"))
    write = avro_writer(avro_file(tmp_path / "row.avsc", plain(schema)))
    reader = decoder_of(tmp_path, schema, {"t": ColumnType.TIMESTAMP, "i": ColumnType.INT})
    decoded = decode(reader, [write({"t": n, "i": 5}) for n in (1, 2**62, 3)])
    assert (list(decoded.bad_rows), decoded.batch.column(1).to_pylist()) == ([1], [5, 5, 5])


def test_more_than_the_limit_is_not_read(tmp_path: Path) -> None:
    schema = record(("li", {"type": "array", "items": "long"}))
    write = avro_writer(avro_file(tmp_path / "row.avsc", schema))
    columns = {"li": ColumnType.LIST_INT}
    reader = decoder_of(tmp_path, schema, columns, limits=MessageLimits(bytes=1 << 20))
    small, large = write({"li": [1] * 10}), write({"li": [1] * 20_000})
    decoded = decode(reader, [small, large, bytes(2 << 20), small])
    assert decoded.batch.num_rows == 2
    assert "and message_bytes_max is 1,048,576" in decoded.bad_messages[1]
    assert "it has 2,097,152 bytes" in decoded.bad_messages[2]
    claimed = b"\xfe\xff\xff\xff\x0f" + b"\2" * 100  # of two billions, a hundred are there
    assert "too early" in decode(reader, [claimed]).bad_messages[0]
