"""Tables as files of JSON lines, of CSV and of tf.Example records, written without Forebay."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any

import crc32c
import pyarrow as pa

from forebay.datatasks.sources.records.tf_examples import EXAMPLE


def json_rows(table: pa.Table) -> bytes:
    lines = [
        json.dumps({k: _text(v) for k, v in row.items() if v is not None}, ensure_ascii=False)
        for row in table.to_pylist()
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def csv_rows(table: pa.Table, *, header: bool = True, delimiter: str = ",") -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([_field(value) for value in row.values()])
    return sink.getvalue().encode()


def tf_rows(table: pa.Table) -> bytes:
    return b"".join(map(framed, map(tf_example, table.to_pylist())))


def tf_example(row: dict[str, Any]) -> bytes:
    example = EXAMPLE()
    for name, value in row.items():
        if value is None:
            continue
        values = [_text(each) for each in (value if isinstance(value, list) else [value])]
        feature = example.features.feature[name]
        first = values[0] if values else ""
        if isinstance(first, str):
            feature.bytes_list.value.extend([each.encode() for each in values])
            feature.bytes_list.SetInParent()
        elif isinstance(first, float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(map(int, values))
    return bytes(example.SerializeToString())


def framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def compressed(data: bytes, ending: str) -> bytes:
    if ending == ".gz":
        return gzip.compress(data, mtime=0)
    if ending == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()
    if ending == ".snappy":  # as Hadoop writes it
        return b"".join(_hadoop(data[at : at + 10_000], 3000) for at in range(0, len(data), 10_000))
    if ending == ".sz":
        chunks = (_snappy(data[at : at + 65_536]) for at in range(0, len(data), 65_536))
        head = b"\xff\x06\x00\x00sNaPpY"
        return head + b"".join(
            struct.pack("<I", len(each) + 4 << 8) + b"crc!" + each for each in chunks
        )
    return data


def _hadoop(data: bytes, step: int) -> bytes:
    parts = [_snappy(data[at : at + step]) for at in range(0, len(data), step)]
    stored = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    return struct.pack(">I", len(data)) + stored


def _snappy(data: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(data, asbytes=True))


def _checksum(data: bytes) -> bytes:
    found = crc32c.crc32c(data)
    return struct.pack("<I", ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _text(value: Any) -> Any:
    """A value of JSON; a text of digits stands for a number among texts that are none."""
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value.isoformat() if isinstance(value, datetime) else value


def _field(value: Any) -> Any:
    return "|".join(map(str, value)) if isinstance(value, list) else _text(value)


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    "json": json_rows,
    "csv": csv_rows,
    "tfrecord": tf_rows,
}
