"""Messages of Avro and protobuf with faults."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from forebay.datatasks.sources.formats.decoder import Written
from forebay.datatasks.sources.kafka.producer import avro_writer, protobuf_writer
from support.hostile.bytes_changed import Places, changed
from support.message_columns import COLUMNS
from support.written_messages import (
    MESSAGE_TYPE,
    avro_file,
    avro_schema,
    descriptor_set,
    protobuf_fields,
)

_ID = 7
_ROW: dict[str, Any] = {
    "i": 7,
    "f": 2.5,
    "s": "wörd\n",
    "b": True,
    "t": datetime(2026, 3, 1, 7, 30, tzinfo=UTC),
    "ls": ["a", "b"],
    "li": [1, 300],
    "lf": [0.5, 1e3],
}
# Numbers of which the last byte does not come, lengths and counts that nothing follows, groups that
# begin or end, and a message inside of itself.
_PARTS = (
    b"\xff" * 9 + b"\x7f", b"\xff" * 9 + b"\x01", b"\x80" * 40, b"\xfe\xff\xff\xff\x0f",
    b"\x01" * 30, b"\x0a", b"\x1a\xff\xff\xff\xff\x07", b"\xa3\x06", b"\xa4\x06",
    b"\xfa\x01\x02\xfa\x01\x00", b"\x00", b"\x02",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Messages:
    """Sound messages of one format: one of every column, one of none, and how to write others."""

    schemas: Written
    sound: bytes
    empty: bytes


@functools.cache
def written_by(format_name: str, folder: Path, is_framed: bool) -> Messages:
    number = _ID if is_framed else None
    path, write = _FORMATS[format_name](folder, number)
    schemas = Written({number: path}, MESSAGE_TYPE if format_name == "protobuf" else "")
    return Messages(schemas, write(_ROW), write(dict.fromkeys(COLUMNS)))


def changed_message(written: Messages, chance: random.Random) -> bytes:
    """A sound one with faults, and with parts that say what is not there."""
    original = written.sound if chance.random() < 0.8 else written.empty
    if chance.random() < 0.1:
        original = chance.randbytes(chance.randrange(40))
    places = Places(small=range(len(original)))
    found = bytearray(changed(original, places, chance) if chance.random() < 0.7 else original)
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(found) + 1)
        found[at:at] = chance.choice(_PARTS) * chance.choice((1, 1, 1, 3, 1000))
    return bytes(found)


def _avro(folder: Path, number: int | None) -> tuple[Path, Callable[[Any], bytes]]:
    schema = avro_schema(COLUMNS)
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": "long"}]}
    schema["fields"] += [
        {"name": "x", "type": {"type": "map", "values": inner}, "default": {}},
        {"name": "y", "type": {"type": "fixed", "name": "F", "size": 4}, "default": "abcd"},
    ]
    path = avro_file(folder / "row.avsc", schema)
    write = avro_writer(path, number)
    return path, lambda row: write({**row, "x": {"a": {"n": 1}}, "y": b"abcd"})


def _protobuf(folder: Path, number: int | None) -> tuple[Path, Callable[[Any], bytes]]:
    inner = {"name": "x", "number": 31, "type": FieldDescriptor.TYPE_MESSAGE}
    path = folder / "row.desc"
    path.write_bytes(
        descriptor_set([*protobuf_fields(COLUMNS), {**inner, "type_name": ".shop.Row"}])
    )
    return path, protobuf_writer(path, MESSAGE_TYPE, number)


_FORMATS = {"avro": _avro, "protobuf": _protobuf}
