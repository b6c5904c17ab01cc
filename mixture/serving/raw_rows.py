"""From rows as JSON objects to the arrays that a SavedModel takes, with errors for wrong rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from forebay.config.specs.base import parse_instant
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.config.yaml.spelling import nearest
from forebay.errors import UsageError
from forebay.mixture.features.values import INT_NULL
from forebay.mixture.serving.served_features import ServedColumn, ServedFeatures

EPOCH = parse_instant("1970-01-01")
Row = Mapping[str, object]


def raw_inputs(features: ServedFeatures, rows: Sequence[Row]) -> dict[str, npt.NDArray[Any]]:
    """Arrays by input name. Row numbers in messages start at 1.

    Raises:
        UsageError: naming the row and the column that is missing, unknown or of the wrong type.
    """
    for number, row in enumerate(rows, start=1):
        _check_columns(features, row, number)
    return {
        served.input: _column(column, served, [row[column] for row in rows])
        for column, served in features.columns.items()
    }


def _check_columns(features: ServedFeatures, row: Row, number: int) -> None:
    for column in row:
        if column not in features.columns:
            meant = nearest(column, features.columns)
            hint = f" (did you mean {meant!r}?)" if meant else ""
            known = ", ".join(features.columns)
            raise UsageError(
                f"row {number}: the model reads no column {column!r}{hint}; it reads {known}"
            )
    for column in features.columns:
        if column not in row:
            raise UsageError(f"row {number}: column {column!r} is missing (use null if unknown)")


def _column(column: str, served: ServedColumn, values: Sequence[object]) -> npt.NDArray[Any]:
    item = LIST_ITEMS.get(served.type)
    try:
        if item is None:
            plain = [_value(served.type, value) for value in values]
            return np.array(plain, _KINDS[served.type][1])
        return _padded(item, [_items(item, value) for value in values])
    except ValueError as error:
        raise UsageError(f"column {column!r} ({served.type}): {error}") from error


def _items(kind: ColumnType, value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return [_value(kind, item) for item in value]


def _padded(kind: ColumnType, lists: Sequence[list[object]]) -> npt.NDArray[Any]:
    length = max((len(items) for items in lists), default=0)
    null, stored, _ = _KINDS[kind]
    padded = np.full((len(lists), length), null, stored)
    for number, items in enumerate(lists):
        padded[number, : len(items)] = items
    return padded


def _value(kind: ColumnType, value: object) -> object:
    null, _, read = _KINDS[kind]
    return null if value is None else read(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _bool(value: object) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return "true" if value else "false"


def _int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a whole number")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r} does not fit into 64 bits")
    return value


def _float(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _timestamp(value: object) -> int:
    return (parse_instant(_text(value)) - EPOCH) // timedelta(microseconds=1)


# By type: what stands for null, the type of its array, and what reads a value that is not null.
_KINDS: Mapping[ColumnType, tuple[object, Any, Callable[[object], object]]] = {
    ColumnType.STRING: ("", object, _text),
    ColumnType.BOOL: ("", object, _bool),
    ColumnType.INT: (INT_NULL, np.int64, _int),
    ColumnType.TIMESTAMP: (INT_NULL, np.int64, _timestamp),
    ColumnType.FLOAT: (math.nan, np.float64, _float),
}
