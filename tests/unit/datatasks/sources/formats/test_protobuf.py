"""Format `protobuf`: values of every type, presence, framing, and broken messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor as F
from support.message_columns import COLUMNS, decode
from support.message_columns import ROW as NULLABLE_ROW
from support.written_messages import MESSAGE_TYPE, descriptor_set, protobuf_fields

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.decoder import Decoder, MessageLimits, Written
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.kafka.producer import protobuf_writer
from forebay.errors import ConfigError

# Lists of protobuf hold no nulls.
ROW = NULLABLE_ROW | {"ls": ["a", "ä"], "li": [1, -1]}
NOTHING = dict.fromkeys(COLUMNS) | {"ls": [], "li": [], "lf": []}
FIELDS = protobuf_fields(COLUMNS)


def file_of(folder: Path, fields: list[dict[str, Any]], before: int = 0) -> Path:
    path = folder / f"shop-{before}.desc"
    path.write_bytes(descriptor_set(fields, before))
    return path


def reader_of(path: Path, columns: dict[str, ColumnType], **more: Any) -> Decoder:
    written = Written({None: path}, MESSAGE_TYPE)
    return decoder_named("protobuf", list(columns), columns, written=written, **more)


def test_values_of_every_type_and_their_nulls(tmp_path: Path) -> None:
    path = file_of(tmp_path, FIELDS)
    write = protobuf_writer(path, MESSAGE_TYPE)
    reader = reader_of(path, COLUMNS)
    decoded = decode(reader, [write(ROW), None, write(NOTHING), write(ROW), b""])
    assert decoded.batch.to_pylist() == [ROW, NOTHING, ROW, NOTHING]
    assert decoded.messages.tolist() == [0, 2, 3, 4]
    assert decoded.bad_messages == {1: "the message has no value"}
    some = reader_of(path, {"s": ColumnType.STRING, "i": ColumnType.INT})
    assert decode(some, [write(ROW)]).batch.to_pylist() == [{"s": "wörd\n", "i": -(2**63)}]
    assert reader.described(write(ROW))["t"] == "google.protobuf.Timestamp"
    assert (reader.described(b"")["li"], reader.described(b"\xff")) == ("repeated int64", {})


def test_a_field_without_presence_has_its_default(tmp_path: Path) -> None:
    fields = [{"name": "i", "number": 1, "type": F.TYPE_SINT32, "has_presence": False}]
    found = decode(reader_of(file_of(tmp_path, fields), {"i": ColumnType.INT}), [b""])
    assert found.batch.to_pylist() == [{"i": 0}]


@pytest.mark.parametrize(
    ("kind", "payload", "declared", "wanted"),
    [
        (F.TYPE_UINT64, b"\x08" + b"\xff" * 9 + b"\x01", "float", float(2**64)),
        (F.TYPE_FIXED32, b"\x0d\x05\0\0\0", "int", 5),
        (F.TYPE_SFIXED64, b"\x09" + b"\xff" * 8, "int", -1),
        (F.TYPE_FLOAT, b"\x0d\0\0\0\x3f", "float", 0.5),
        (F.TYPE_INT64, b"\x08\xdc\x0b", "timestamp", 1_500_000),
        (F.TYPE_STRING, b"\x0a\x0a1970-01-02", "timestamp", 86_400_000_000),
    ],
)
def test_stored_types(
    tmp_path: Path, kind: int, payload: bytes, declared: str, wanted: Any
) -> None:
    path = file_of(tmp_path, [{"name": "a", "number": 1, "type": kind}])
    found = decode(reader_of(path, {"a": ColumnType(declared)}), [payload]).batch.column(0)
    if declared == "timestamp":
        found = found.cast("int64")
    assert found.to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("kind", "more", "declared", "says"),
    [
        (F.TYPE_BYTES, {}, "string", "column 'a' is stored as bytes, which cannot be read as"),
        (F.TYPE_DOUBLE, {}, "int", "stored as double"),
        (F.TYPE_INT64, {"repeated": True}, "int", "stored as repeated int64"),
        (F.TYPE_INT64, {}, "list<int>", "stored as int64"),
        (F.TYPE_MESSAGE, {"type_name": ".shop.Row"}, "string", "stored as shop.Row"),
    ],
)
def test_types_that_no_column_has(
    tmp_path: Path, kind: int, more: dict[str, Any], declared: str, says: str
) -> None:
    path = file_of(tmp_path, [{"name": "a", "number": 1, "type": kind, **more}])
    assert says in decode(reader_of(path, {"a": ColumnType(declared)}), [b""]).bad_messages[0]


def test_schemas_that_are_not_read(tmp_path: Path) -> None:
    path = file_of(tmp_path, FIELDS)
    with pytest.raises(ConfigError, match=r"no message type 'shop\.Rov': did you mean 'shop\.Row'"):
        decoder_named("protobuf", [], {}, written=Written({None: path}, "shop.Rov"))
    path.write_bytes(b"\xff\xff")
    with pytest.raises(ConfigError, match="not a descriptor set"):
        reader_of(path, {})
    lone = descriptor_set(FIELDS)
    path.write_bytes(lone[lone.index(b"shop.proto") - 4 :])
    with pytest.raises(ConfigError, match=str(path)):
        reader_of(path, {})


@pytest.mark.parametrize("before", [0, 1, 300])
def test_framing_says_which_type_of_the_file_it_is(tmp_path: Path, before: int) -> None:
    path = file_of(tmp_path, FIELDS, before)
    reader = decoder_named("protobuf", ["i"], COLUMNS, written=Written({7: path}, MESSAGE_TYPE))
    message = protobuf_writer(path, MESSAGE_TYPE, 7)({"i": 5})
    wanted = {0: b"\0", 1: b"\2\2", 300: b"\2\xd8\x04"}[before]
    assert message == b"\0\0\0\0\x07" + wanted + b"\x08\x05"
    odd = [b"\0\0\0\0\x07\2\4\x08\x05", b"\0\0\0\0\x07"]
    decoded = decode(reader, [message, *odd, message])
    assert decoded.batch.to_pylist() == [{"i": 5}] * 2
    told = "its framing names another message type of its schema's file"
    assert decoded.bad_messages == {1: told, 2: told}
    if not before:
        assert decode(reader, [b"\0\0\0\0\x07\2\0\x08\x05"]).batch.to_pylist() == [{"i": 5}]


def test_messages_that_are_none(tmp_path: Path) -> None:
    path = file_of(tmp_path, FIELDS)
    good = protobuf_writer(path, MESSAGE_TYPE)(ROW)
    reader = reader_of(path, COLUMNS)
    odd = {
        "cut": good[:-1],
        "no tag": b"\0",
        "a length behind the end": b"\x1a\x7f",
        "a huge length": b"\x1a\xff\xff\xff\xff\x07",
        "an endless number": b"\x08" + b"\x80" * 100,
        "an open group": b"\xa3\x06",
        "deep groups": b"\xa3\x06" * 100_000 + b"\xa4\x06" * 100_000,
    }
    for name, value in odd.items():
        decoded = decode(reader, [good, value, good])
        assert decoded.batch.to_pylist() == [ROW] * 2, name
        assert decoded.bad_messages[1].startswith("not a message of its type: "), name


def test_a_wrong_wire_type_is_said(tmp_path: Path) -> None:
    path = file_of(tmp_path, FIELDS)
    good = protobuf_writer(path, MESSAGE_TYPE)(ROW)
    reader = reader_of(path, COLUMNS)
    values = [good, b"\x0a\x01a", b"\x18\x05", b"\x0d\0\0\0\0"]
    values += [b"\xa0\x06\x05", b"\x3a\x02\x01\x02"]
    decoded = decode(reader, values)
    assert decoded.bad_messages == {
        1: "field 'i' has wire type 2 instead of 0",
        2: "field 's' has wire type 0 instead of 2",
        3: "field 'i' has wire type 5 instead of 0",
    }
    unknown_field, packed = decoded.batch.to_pylist()[1:]
    assert (unknown_field, packed["li"]) == (NOTHING, [1, 2])


def test_values_that_do_not_fit_are_bad_rows(tmp_path: Path) -> None:
    reader = reader_of(file_of(tmp_path, FIELDS), COLUMNS)
    values = [b"\x1a\x01a", b"\x1a\x01\xff", b"\x32\x01\xff", b"\x1a\x01b"]
    decoded = decode(reader, values)
    assert list(decoded.bad_rows) == [1, 2]
    assert "column 's' as string" in decoded.bad_rows[1]
    assert decoded.batch.column(2).to_pylist() == ["a", None, None, "b"]
    far = b"\x2a\x0b\x08" + b"\xff" * 8 + b"\x7f"
    nanos = b"\x2a\x06\x10\x80\x94\xeb\xdc\x03"
    found = decode(reader, [far[:1] + b"\x0a" + far[2:], nanos]).bad_messages
    assert found == {
        0: f"column 't' as timestamp: {2**63 - 1} s and 0 ns since 1970",
        1: "column 't' as timestamp: 0 s and 1000000000 ns since 1970",
    }


def test_a_text_that_is_no_time_is_a_bad_row(tmp_path: Path) -> None:
    path = file_of(tmp_path, [{"name": "t", "number": 1, "type": F.TYPE_STRING}])
    reader = reader_of(path, {"t": ColumnType.TIMESTAMP})
    decoded = decode(reader, [b"\x0a\x0a2013-06-01", b"\x0a\x01\xff", b"\x0a\x05later", b""])
    assert list(decoded.bad_rows) == [1, 2]
    assert decoded.batch.column(0).is_null().to_pylist() == [False, True, True, True]


def test_what_is_inside_of_other_messages_takes_no_memory(tmp_path: Path) -> None:
    many = [{"name": f"n{n}", "number": n, "type": F.TYPE_INT64} for n in range(2, 2000)]
    inner = {"name": "x", "number": 1, "type": F.TYPE_MESSAGE, "type_name": ".shop.Row"}
    path = file_of(tmp_path, [{**inner, "repeated": True}, *many])
    reader = reader_of(path, {"n7": ColumnType.INT})
    decoded = decode(reader, [b"\x0a\x00" * 100_000 + b"\x38\x05", b"\x0a\x01\xff\x38\x06"])
    assert decoded.batch.to_pylist() == [{"n7": 5}, {"n7": 6}], "what is not wanted is not read"


def test_more_than_the_limit_is_not_read(tmp_path: Path) -> None:
    reader = reader_of(file_of(tmp_path, FIELDS), COLUMNS, limits=MessageLimits(bytes=1 << 20))
    small, large = b"\x08\x05", b"\x3a\x80\x80\x02" + b"\x01" * (1 << 15)
    decoded = decode(reader, [small, large, small])
    assert decoded.batch.num_rows == 2
    assert "and message_bytes_max is 1,048,576" in decoded.bad_messages[1]
