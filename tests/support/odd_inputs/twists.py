"""Declarations over stored files that say something else of them than what is there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import yaml

from support.declarations import Value, dump
from support.odd_inputs.cases import Case

_TYPES = ("string", "int", "float", "bool", "timestamp", "list<string>", "list<int>", "list<float>")
_PATHS = (
    "nowhere", "data/*", "data/**", "**", "*", "data/", "data//", "./data", "../x", "/nowhere",
    "/dev/null", "/proc/self", "data/x.parquet", "a" * 300, "a/" * 600, "\u0000", "\n", "~", " ",
    "file:data", "file:///nowhere", "foo://x", "s3://", "http://[", "memory://x", "config",
    "data/[", "data/[!", "data/?", "config/sources/odd.yaml", "loop", "data/{date}",
)  # fmt: skip
_WINDOW_PATHS = (
    "{date}/*.parquet", "date={date}/*", "{year}/{month}/{day}/*", "{date:%Y%m%d}/*", "{date}",
    "{date}/{hour}/*", "{date:%s}", "{hour}", "x", "**/{date}*", "{date}/{date}/*", "[{date}",
)  # fmt: skip
_INSTANTS = (
    "2026-03-02", "2026-03-02T10:30", "1000-01-01", "8999-12-31", "2026-03-01T00:00:00.000001",
)  # fmt: skip
_COLUMNS = ("at", "id", "y", "nowhere", "", "a.b", "at ", "AT", "list", "é")
_Twist = Callable[[random.Random, Value, Value], str]


def twisted(chance: random.Random, case: Case) -> None:
    """Change a case's declarations. Nothing is said of its rows then, but how they are refused."""
    files = [case.config / "sources" / "odd.yaml", case.config / "pipelines" / "p.yaml"]
    source, pipeline = (yaml.safe_load(path.read_text()) for path in files)
    names = chance.sample(list(_TWISTS), chance.choice((1, 1, 2)))
    done = [f"{name} {_TWISTS[name](chance, source, pipeline)!r:.80}" for name in names]
    case.fault = "; ".join(filter(None, [case.fault, *done]))
    case.objects += [str(source["options"].get("path")), "/loop"]
    if set(names) - {"type", "feature", "window"}:
        case.read = None
    if not (case.root / "loop").is_symlink():
        (case.root / "loop").symlink_to("loop")
    for path, value in zip(files, (source, pipeline), strict=True):
        path.write_text(dump(value))


def _type(chance: random.Random, source: Value, _pipeline: Value) -> str:
    name = chance.choice(list(source["columns"]))
    source["columns"][name] = chance.choice(_TYPES)
    return f"{name}: {source['columns'][name]}"


def _path(chance: random.Random, source: Value, _pipeline: Value) -> str:
    key = "table" if source["kind"] == "iceberg" else "path"
    source["options"][key] = chance.choice(_PATHS)
    return str(source["options"][key])


def _window_path(chance: random.Random, source: Value, _pipeline: Value) -> str:
    source["options"]["window_path"] = chance.choice(_WINDOW_PATHS)
    return str(source["options"]["window_path"])


def _of_source(key: str, values: tuple[Any, ...]) -> _Twist:
    def twist(chance: random.Random, source: Value, _pipeline: Value) -> str:
        source[key] = chance.choice(values)
        return str(source[key])

    return twist


def _of_dataset(key: str, values: tuple[Any, ...]) -> _Twist:
    def twist(chance: random.Random, _source: Value, pipeline: Value) -> str:
        pipeline["dataset"][key] = chance.choice(values)
        return str(pipeline["dataset"][key])

    return twist


def _feature(chance: random.Random, source: Value, pipeline: Value) -> str:
    name = chance.choice(list(source["columns"]))
    feature = chance.choice(
        (
            {"encode": "hash", "buckets": 8},
            {"encode": "hash", "buckets": 8, "part": "hour"},
            {"encode": "numeric"},
            {"encode": "numeric", "transform": "log1p"},
            {"encode": "vocabulary", "values": ["a", "", "null"]},
            {"encode": "vocabulary", "values": [1, 2]},
            {"encode": "bucketise", "boundaries": [0, 1.5]},
            {"encode": "cross", "columns": [name, "id"], "buckets": 8},
        )
    )
    kept = feature if "columns" in feature else {**feature, "column": name}
    pipeline["dataset"]["features"]["g"] = kept
    return str(kept)


_TWISTS: dict[str, _Twist] = {
    "type": _type,
    "path": _path,
    "window_path": _window_path,
    "feature": _feature,
    "event_time": _of_source("event_time", (*_COLUMNS, None)),
    "starts": _of_source("starts", _INSTANTS),
    "ends": _of_source("ends", _INSTANTS),
    "bad_rows": _of_source("bad_rows", ("dead_letter",)),
    "label_null": _of_source("label_null", ("dead_letter",)),
    "dead_letter_rows_max": _of_source("dead_letter_rows_max", (0, 1)),
    "ready": _of_source("ready", ({"marker": "_SUCCESS"}, {"marker": "x\\y"}, {"marker": "é"})),
    "event_id": _of_dataset("event_id", tuple([each] for each in _COLUMNS)),
    "label": _of_dataset(
        "label",
        (
            *({"column": each} for each in _COLUMNS),
            {"column": "y", "positive": "1"},
            {"column": "y", "positive": 1, "negative": -1},
            {"column": "y", "greater_than": 0.5},
            {"column": "at", "greater_than": 0.5},
            {"column": "id", "positive": 2**63 - 1},
            {"column": "y", "known_at": "at"},
            {"column": "y", "known_at": "id"},
        ),
    ),
    "window": _of_dataset("window", ("1h", "1d", "2h", "7d", "0s", "1m")),
    "timezone": _of_dataset("timezone", ("Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu")),
    "slices": _of_dataset("slices", (["f"], ["g"], ["id"], ["nowhere"])),
}
