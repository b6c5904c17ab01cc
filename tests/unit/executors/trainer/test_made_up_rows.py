"""The rows that an export is checked with: the same on every machine, so that a check that failed
can be looked at again."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from support.learning import layout_of

from forebay.executors.trainer.export_check import made_up_rows

FEATURES: dict[str, Any] = {
    "place": {"encode": "vocabulary", "values": ["Köln", 0]},
    "sold": {"encode": "vocabulary", "values": ["true", "false"]},
    "item": {"encode": "vocabulary", "values": [3, 2**61, 2**63]},
    "count": {"encode": "bucketise", "boundaries": [-(2.0**62), 0.4, 1.6]},
    "hour": {"encode": "bucketise", "column": "at", "part": "hour", "boundaries": [6]},
    "price": {"encode": "numeric", "transform": "log1p", "mean": 3.0, "scale": 0.5},
    "size": {"encode": "numeric", "mean": 0.5, "scale": 0.125},
    "age": {"encode": "numeric", "mean": 40, "scale": 12},
    "pair": {"encode": "cross", "columns": ["place", "item"], "buckets": 100},
    "tags": {"encode": "vocabulary", "values": ["a", "b"]},
    "sizes": {"encode": "bucketise", "boundaries": [0, 1.5]},
}
COLUMNS = {
    "place": "string",
    "sold": "bool",
    "item": "int",
    "count": "int",
    "at": "timestamp",
    "price": "float",
    "size": "float",
    "age": "int",
    "tags": "list<string>",
    "sizes": "list<float>",
}
_DIGESTS = (
    *("f1c1f525", "81ea9a04", "becf0dad", "72016e48", "b4f54e64", "766e180f", "2c133d44"),
    *("0c2d17cd", "22e40d44", "500dac6b"),
)
DIGESTS = dict(zip(COLUMNS, _DIGESTS, strict=True))


def digests(count: int) -> dict[str, str]:
    rows = made_up_rows(layout_of(FEATURES, COLUMNS), count)
    columns = {name: repr([row[name] for row in rows]) for name in COLUMNS}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in columns.items()}


def test_made_up_rows_are_the_same_on_every_machine() -> None:
    assert digests(300) == DIGESTS


def held(feature: dict[str, Any], kind: str) -> set[object]:
    layout = layout_of({"x": {"encode": "numeric", **feature}}, {"x": kind})
    return {row["x"] for row in made_up_rows(layout, 300)}


def test_numbers_that_no_column_can_hold_are_left_out() -> None:
    assert held({"mean": 1e19, "scale": 1e18}, "int") == {None, 2**62}
    logarithms = held({"mean": 702, "scale": 1, "transform": "log1p"}, "float")
    assert logarithms == {None, math.expm1(700)}, "a float ends at e to the power of 709"


def test_so_many_as_are_asked_for() -> None:
    layout = layout_of(FEATURES, COLUMNS)
    assert (len(made_up_rows(layout)), made_up_rows(layout)[:9]) == (64, made_up_rows(layout, 9))
    assert made_up_rows(layout, 1) == [dict.fromkeys(layout.types)]
