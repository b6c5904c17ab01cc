"""Rows that the source suite publishes: every declared type, nulls, and a number in each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.config.specs.windows import HOUR, Interval

__all__ = ["COLUMNS", "EVENT_TIME", "NUMBER", "START", "Batch", "batch", "hours", "rows"]

START = datetime(2026, 3, 1, 5, tzinfo=UTC)
EVENT_TIME = "happened"
NUMBER = "number"
COLUMNS: dict[str, ColumnType] = {
    NUMBER: ColumnType.INT,
    EVENT_TIME: ColumnType.TIMESTAMP,
    "word": ColumnType.STRING,
    "ratio": ColumnType.FLOAT,
    "flag": ColumnType.BOOL,
    "words": ColumnType.LIST_STRING,
    "counts": ColumnType.LIST_INT,
    "ratios": ColumnType.LIST_FLOAT,
}


@dataclass(frozen=True)
class Batch:
    """Rows that are published together. Their event times are in the hour of `published`.

    published: record timestamp or commit time for unbounded kinds.
    """

    published: datetime
    table: pa.Table


def hours(first: int, last: int) -> list[Interval]:
    """Spans of one hour each, from START + first to START + last (both included)."""
    return [
        Interval(START + HOUR * index, START + HOUR * (index + 1))
        for index in range(first, last + 1)
    ]


def batch(hour: int, numbers: Sequence[int], minute: int = 0) -> Batch:
    """Rows of one hour with these numbers; every seventh value of most columns is null."""
    return Batch(START + HOUR * hour + timedelta(minutes=minute), rows(hour, numbers, minute))


def rows(hour: int, numbers: Sequence[int], minute: int = 0) -> pa.Table:
    """The table of `batch`."""
    number = np.array(numbers, np.int64)
    start = START + HOUR * hour + timedelta(minutes=minute)
    step = timedelta(minutes=60 - minute) / max(len(number), 1)
    times = [start + step * index for index in range(len(number))]
    values = {
        NUMBER: pa.array(number),
        EVENT_TIME: pa.array(times, pa.timestamp("us", tz="UTC")),
        "word": pa.array([f"wörd {value % 5}" for value in numbers], mask=_nulls(number, 0)),
        "ratio": pa.array(number / 4, mask=_nulls(number, 1)),
        "flag": pa.array(number % 3 == 0, mask=_nulls(number, 2)),
        "words": pa.array(
            [None if value % 7 == 3 else [f"w{n}" for n in range(value % 4)] for value in numbers],
            pa.list_(pa.string()),
        ),
        "counts": pa.array(
            [None if value % 7 == 4 else list(range(value % 3)) for value in numbers],
            pa.list_(pa.int64()),
        ),
        "ratios": pa.array(
            [None if value % 7 == 5 else [value / 8] * (value % 3) for value in numbers],
            pa.list_(pa.float64()),
        ),
    }
    return pa.table(values)


def _nulls(numbers: npt.NDArray[np.int64], rest: int) -> npt.NDArray[np.bool_]:
    return np.asarray(numbers % 7 == rest)
