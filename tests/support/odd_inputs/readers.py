"""Readers that know nothing of Forebay: DuckDB for Parquet, plain Arrow and `json` for the rest."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from support.odd_inputs.cases import Row

Declared = Mapping[str, str]
_SEGMENT = re.compile(r"[0-9]{20}-[0-9]{8}-[0-9]{15}\.arrow")
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}


def parquet_rows(folder: Path, declared: Declared) -> list[Row]:
    rows: list[Row] = []
    for path in sorted(folder.rglob("*.parquet")):
        if any(part[0] in "._" for part in path.relative_to(folder).parts):
            continue
        with duckdb.connect() as session:
            place = "read_parquet($1, hive_partitioning = false)"
            asked = [str(path).replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")]
            told = session.execute(f"describe select * from {place}", asked).fetchall()
            types = {name: kind for name, kind, *_ in told}
            wanted = ", ".join(_instant(name, types[name]) for name in declared)
            found = session.execute(f"select {wanted} from {place}", asked).fetchall()
        rows += [dict(zip(declared, row, strict=True)) for row in found]
    return [as_declared(row, declared) for row in rows]


def _instant(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if kind.endswith("_NS"):
        quoted += "::TIMESTAMPTZ" if "TZ" in kind else "::TIMESTAMP"
    return f"epoch_us({quoted})" if kind.startswith("TIMESTAMP") else quoted


def segment_rows(folder: Path, declared: Declared) -> list[Row]:
    rows = []
    for path in sorted(folder.glob("*/*.arrow")):
        if _SEGMENT.fullmatch(path.name):
            with pa.memory_map(str(path)) as source:
                rows += table_rows(pa.ipc.open_file(source).read_all(), declared)
    return rows


def table_rows(table: pa.Table | pa.RecordBatch, declared: Declared) -> list[Row]:
    values = {name: _plain(table[name]) for name in declared}
    rows = (dict(zip(declared, row, strict=True)) for row in zip(*values.values(), strict=True))
    return [as_declared(row, declared) for row in rows]


def _plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        return column.to_pylist()
    unit = column.type.unit
    ticks = column.cast(pa.int64()).to_pylist()
    if unit == "ns":
        return [None if each is None else each // 1000 for each in ticks]
    return [None if each is None else each * _UNITS[unit] for each in ticks]


def json_rows(messages: Iterable[bytes], declared: Declared) -> list[Row]:
    """Of messages that are one object each; a missing key is a null."""
    found = []
    for message in messages:
        row = json.loads(message, strict=False)
        told = {name: row.get(name) for name in declared}
        millis = {
            name: int(value) * 1000
            for name, value in told.items()
            if declared[name] == "timestamp" and isinstance(value, (int, float))
        }
        found.append(as_declared(told | millis, declared))
    return found


def as_declared(row: Mapping[str, Any], declared: Declared) -> Row:
    """Values that can be compared: instants in microseconds, and floats by what they print."""
    return {name: _value(row[name], kind) for name, kind in declared.items()}


def _value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith("list<"):
        return [_value(each, kind[5:-1]) for each in value]
    if kind == "float":
        number = float(value)
        return "nan" if math.isnan(number) else repr(number)
    if kind == "timestamp":
        return _micros(value)
    return int(value) if kind == "int" else value


def _micros(value: Any) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        count, _, rest = value.partition(" ")
        if rest == "microseconds after 1970":  # what no date can say
            return int(count)
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime) and isinstance(value, date):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
