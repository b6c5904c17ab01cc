"""Declarations over stored files that say something else of them than what is there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
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


def _any_of(values: Sequence[Any], place: str, key: str) -> _Twist:
    """One of these as the key of a source, of its options or of the dataset."""

    def twist(chance: random.Random, source: Value, pipeline: Value) -> str:
        places = {"source": source, "options": source["options"], "dataset": pipeline["dataset"]}
        places[place][key] = chance.choice(values)
        return str(places[place][key])

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


_LABELS = (
    *({"column": each} for each in _COLUMNS),
    {"column": "y", "positive": "1"},
    {"column": "y", "positive": 1, "negative": -1},
    {"column": "y", "greater_than": 0.5},
    {"column": "at", "greater_than": 0.5},
    {"column": "id", "positive": 2**63 - 1},
    {"column": "y", "known_at": "at"},
    {"column": "y", "known_at": "id"},
)
_READY = ({"marker": "_SUCCESS"}, {"marker": "x\\y"}, {"marker": "é"})
_ZONES = ("Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu")
_TWISTS: dict[str, _Twist] = {
    "type": _type,
    "path": _path,
    "window_path": _any_of(_WINDOW_PATHS, "options", "window_path"),
    "feature": _feature,
    "event_time": _any_of((*_COLUMNS, None), "source", "event_time"),
    "starts": _any_of(_INSTANTS, "source", "starts"),
    "ends": _any_of(_INSTANTS, "source", "ends"),
    "bad_rows": _any_of(("dead_letter",), "source", "bad_rows"),
    "label_null": _any_of(("dead_letter",), "source", "label_null"),
    "dead_letter_rows_max": _any_of((0, 1), "source", "dead_letter_rows_max"),
    "ready": _any_of(_READY, "source", "ready"),
    "event_id": _any_of([[each] for each in _COLUMNS], "dataset", "event_id"),
    "label": _any_of(_LABELS, "dataset", "label"),
    "window": _any_of(("1h", "1d", "2h", "7d", "0s", "1m"), "dataset", "window"),
    "timezone": _any_of(_ZONES, "dataset", "timezone"),
    "slices": _any_of((["f"], ["g"], ["id"], ["nowhere"]), "dataset", "slices"),
}
