"""Odd files: Parquet, a log's segments, an Iceberg table; most readable, some broken."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.odd_inputs import columns as odd
from support.odd_inputs.cases import Case, declare
from support.odd_inputs.readers import parquet_rows, segment_rows, table_rows

_FOLDERS = (
    "data", "a b", "day=2026-02-30", "x=y=z", "50%", "%41", "ünïcode", "日本", "it's", "d.parquet",
    "#1", "&", "(x)", "day=__HIVE_DEFAULT_PARTITION__", "a\\b", "~", "-x", "data//inner",
    "./data/.",
)  # fmt: skip
_DAYS = ("day=2026-03-01", "day=2026-03-02", "day=1999-12-31")
_NO_DAYS = ("day=2026-02-30", "day=0000-01-01", "day=2026-13-01", "day=9999-12-31", "day=x")
_CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
_ICEBERG = (pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.float32(), pa.bool_())
_FAULTS = 0.3  # of all files


def parquet_case(chance: random.Random, root: Path) -> Case:
    folder = chance.choice(_FOLDERS)
    case = Case(root, "parquet", f"parquet in {folder!r}", objects=["odd", folder])
    place = root / folder
    forms = odd.forms(chance, chance.randrange(5))
    names = [chance.choice(("p", "a b", "ä", "%25", "k=v", "'", "1", "é")) for _ in range(2)]
    declared = _declared(forms)
    by_path = chance.random() < 0.25
    folders = _DAYS if by_path else ("", "sub", "hour=07")
    paths, first = [], 0
    for number, name in enumerate(names[: chance.randrange(1, 3)]):
        path = place / chance.choice(folders) / f"{name}{number}.parquet"
        table = _table(chance, forms, first, chance.randrange(1, 30))
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **_written(chance))
        paths.append(path)
        first += table.num_rows
    if chance.random() < _FAULTS:
        _break(chance, case, chance.choice(paths))
    if by_path and chance.random() < _FAULTS:
        day = place / chance.choice(_NO_DAYS)
        paths[0].parent.rename(day)
        case.fault += f" in {day.name}"
    case.objects += [str(path.name) for path in paths]
    is_real = all(path.exists() for path in paths)  # other days are in no window
    case.read = (lambda kinds: parquet_rows(place, kinds)) if is_real or not by_path else None
    options = {"path": folder} | ({"window_path": "day={date}/*.parquet"} if by_path else {})
    case.by_time = not by_path
    declare(case, "parquet", options, declared)
    return case


def log_case(chance: random.Random, root: Path) -> Case:
    case = Case(root, "log", "log", objects=["odd", "log data"])
    forms = odd.forms(chance, chance.randrange(5))
    declared = _declared(forms)
    paths, first = [], 0
    for partition in chance.sample(("0", "1", "a b", "é", "k=v", "%2F"), chance.randrange(1, 3)):
        base, at = 0, odd.START
        for _ in range(chance.randrange(1, 4)):
            table = _table(chance, forms, first, chance.randrange(1, 20))
            at += timedelta(seconds=chance.randrange(80_000))
            name = f"{base:020d}-{table.num_rows:08d}-{int(at.timestamp() * 1000):015d}.arrow"
            path = root / "data" / partition / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=chance.choice((1, 3, 1000)))
            paths.append(path)
            base, first = base + table.num_rows, first + table.num_rows
    if chance.random() < _FAULTS:
        _break(chance, case, chance.choice(paths))
    case.objects += [path.name for path in paths]
    case.read = lambda kinds: segment_rows(root / "data", kinds)
    declare(case, "log", {"path": "data"}, declared)
    return case


def iceberg_case(chance: random.Random, root: Path) -> Case:
    from pyiceberg.catalog.sql import SqlCatalog

    case = Case(root, "iceberg", "iceberg", objects=["odd"], by_time=True)
    (root / "data").mkdir()
    catalog = SqlCatalog(
        "default", uri=f"sqlite:///{root}/data/c.db", warehouse=f"file://{root}/data/w"
    )
    catalog.create_namespace("shop")
    forms = odd.forms(chance, chance.randrange(3))
    forms = [each for each in forms if each.stored in _ICEBERG and not each.is_encoded]
    table, declared = _table(chance, forms, 0, chance.randrange(1, 30)), _declared(forms)
    at = pa.array([odd.START + timedelta(minutes=97 * n) for n in range(table.num_rows)])
    table = table.set_column(1, "at", at.cast(pa.timestamp("us", "UTC")))
    try:
        made = catalog.create_table("shop.odd", table.schema)
        for at in range(0, table.num_rows, 10):
            made.append(table.slice(at, 10))
    finally:
        catalog.engine.dispose()
    paths = sorted((root / "data" / "w").rglob("*.parquet"))
    if chance.random() < _FAULTS:
        _break(chance, case, chance.choice(paths))
    case.objects += [path.name for path in paths]
    case.read = None if case.fault else lambda kinds: table_rows(table, kinds)
    options = {"catalog": {"type": "sql", "uri": "sqlite:///data/c.db"}, "table": "shop.odd"}
    declare(case, "iceberg", options, declared)
    return case


def _table(chance: random.Random, forms: list[odd.Form], first: int, rows: int) -> pa.Table:
    fixed = {
        "id": pa.array(range(first, first + rows), pa.int64()),
        "at": odd.times(chance, rows),
        "y": pa.array([each % 2 for each in range(rows)], pa.int64()),
    }
    return pa.table(fixed | {each.name: each.array(chance, rows) for each in forms})


def _declared(forms: list[odd.Form]) -> dict[str, str]:
    declared = {"id": "int", "at": "timestamp", "y": "int"}
    return declared | {each.name: each.declared for each in forms}


def _written(chance: random.Random) -> dict[str, object]:
    return {
        "compression": chance.choice(_CODECS),
        "row_group_size": chance.choice((1, 4, 1000)),
        "use_dictionary": chance.choice((True, False)),
        "write_statistics": chance.choice((True, False)),
        "write_page_index": chance.choice((True, False)),
        "store_schema": chance.random() < 0.8,
        "data_page_version": chance.choice(("1.0", "2.0")),
        "use_deprecated_int96_timestamps": chance.random() < 0.2,
    }


def _break(chance: random.Random, case: Case, path: Path) -> None:
    content = path.read_bytes()
    name, change = chance.choice(list(_WAYS.items()))
    path.unlink()
    done = change(chance, path, content)
    case.fault = f"{name} ({path.name}{f': {done}' if done else ''})"
    case.objects.append(done or path.name)


def _cut(chance: random.Random, path: Path, content: bytes) -> str:
    at = chance.randrange(len(content))
    path.write_bytes(content[:at])
    return f"at {at}"


def _flipped(chance: random.Random, path: Path, content: bytes) -> str:
    changed, at = bytearray(content), []
    for _ in range(chance.randrange(1, 8)):
        place = chance.choice((chance.randrange(len(content)), -chance.randrange(1, 200)))
        changed[place % len(content)] = chance.randrange(256)
        at.append(place)
    path.write_bytes(changed)
    return str(at)


def _tail(chance: random.Random, path: Path, _content: bytes) -> str:
    path.write_bytes(chance.randbytes(40) + chance.randbytes(4) + b"PAR1")
    return "a footer of noise"


def _table_like(make: Callable[[int], pa.Table]) -> Callable[[random.Random, Path, bytes], str]:
    def change(chance: random.Random, path: Path, _content: bytes) -> str:
        if path.suffix == ".arrow":
            parts = path.stem.split("-")
            table = make(int(parts[1]))
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
            return ""
        try:
            pq.write_table(make(5), path)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            path.write_bytes(b"PAR1")  # no Parquet file has such columns
        return ""

    return change


def _like(rows: int, **arrays: pa.Array) -> pa.Table:
    at = pa.array([odd.START] * rows, pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(range(rows)), "at": at, "y": pa.array([0] * rows)} | arrays)


def _far(rows: int) -> pa.Table:
    far = [-(2**62), 2**62, -62_135_596_800_000_001, 253_402_300_800_000_000]
    values = (far * rows)[:rows]
    return _like(rows, at=pa.array(values, pa.timestamp("us", "UTC")))


# Whose values nobody reads as a number or a time, or not all of them.
_ID_TYPES = (
    pa.string_view(), pa.binary(), pa.binary_view(), pa.large_binary(), pa.binary(3), pa.bool_(),
    pa.decimal128(38, 10), pa.decimal256(50, 2), pa.time64("us"), pa.duration("s"), pa.float16(),
    pa.list_(pa.int64()), pa.list_view(pa.int64()), pa.list_(pa.list_(pa.int64())), pa.null(),
    pa.map_(pa.string(), pa.int64()), pa.struct([("a", pa.int64())]), pa.date64(),
    pa.run_end_encoded(pa.int32(), pa.int64()), pa.dictionary(pa.int32(), pa.large_string()),
    pa.timestamp("s"), pa.month_day_nano_interval(),
)  # fmt: skip


def _nulls_as(column: str, kind: pa.DataType) -> Callable[[int], pa.Table]:
    return lambda rows: _like(rows, **{column: pa.array([None] * rows, kind)})


_TYPES: dict[str, Callable[[int], pa.Table]] = {
    "no columns": lambda rows: pa.table({}),
    "a column is missing": lambda rows: _like(rows).drop_columns(["at"]),
    "ids are texts": lambda rows: _like(rows, id=pa.array(["x"] * rows)),
    "ids are structs": lambda rows: _like(rows, id=pa.array([{"a": 1}] * rows)),
    "ids are too large": lambda rows: _like(rows, id=pa.array([2**64 - 1] * rows, pa.uint64())),
    "ids are no whole numbers": lambda rows: _like(rows, id=pa.array([0.5] * rows)),
    "ids are not numbers": lambda rows: _like(rows, id=pa.array([float("nan")] * rows)),
    "times are numbers": lambda rows: _like(rows, at=pa.array([1] * rows)),
    "times are durations": lambda rows: _like(rows, at=pa.array([1] * rows, pa.duration("us"))),
    "times are no times": lambda rows: _like(rows, at=pa.array(["yesterday"] * rows)),
    "times are nulls": lambda rows: _like(rows, at=pa.nulls(rows, pa.timestamp("us", "UTC"))),
    "times are far": _far,
    "a column twice": lambda rows: _like(rows).append_column("id", _like(rows)["id"]),
    "labels are texts": lambda rows: _like(rows, y=pa.array(["no"] * rows)),
    "labels are nulls": lambda rows: _like(rows, y=pa.nulls(rows)),
    **{f"ids are {kind}": _nulls_as("id", kind) for kind in _ID_TYPES},
    **{f"times are {kind}": _nulls_as("at", kind) for kind in _ID_TYPES},
}


def _folder(_chance: random.Random, path: Path, content: bytes) -> str:
    path.mkdir()
    (path / "in.parquet").write_bytes(b"x")
    return ""


def _made(make: Callable[[Path], object]) -> Callable[[random.Random, Path, bytes], str]:
    def change(_chance: random.Random, path: Path, _content: bytes) -> str:
        make(path)
        return ""

    return change


def _linked(_chance: random.Random, path: Path, content: bytes) -> str:
    path.write_bytes(content)
    os.link(path, path.with_name(f"z{path.name}"))
    return ""


def _renamed(chance: random.Random, path: Path, content: bytes) -> str:
    base, rows, commit = [*path.stem.split("-"), "1", "1"][:3]
    names = (
        f"{base}-{int(rows) + 1:08d}-{commit}.arrow" if rows.isdigit() else "x.arrow",
        f"{'9' * 20}-{rows}-{commit}.arrow",
        f"{base}-{rows}-{'9' * 15}.arrow",
        f"{base}-{rows}-{'0' * 15}.arrow",
        "x.parquet.arrow",
    )
    name = chance.choice(names)
    path.with_name(name).write_bytes(content)
    return name


_WAYS: dict[str, Callable[[random.Random, Path, bytes], str]] = {
    "cut": _cut,
    "bytes changed": _flipped,
    "noise": _tail,
    "text": _made(lambda path: path.write_text("<html>404 Not Found</html>\n")),
    "no bytes": _made(Path.touch),
    "a folder": _folder,
    "a broken link": _made(lambda path: path.symlink_to(path.with_name("nowhere"))),
    "a pipe": _made(os.mkfifo),
    "two names": _linked,
    "gone": lambda _chance, _path, _content: "removed",
    "renamed": _renamed,
    **{name: _table_like(make) for name, make in _TYPES.items()},
}
