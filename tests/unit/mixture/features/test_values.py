"""Null, text, number and part of single stored values, against plain Python."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.sources import ColumnType
from forebay.mixture.features.values import INT_NULL, numbers, seconds_between, texts, time_part

SMALLEST = INT_NULL
NOW, LARGEST = 1_772_323_200_000_000, 2**63 - 1
CENTURIES = 9.2e12  # seconds that microseconds of 63 bits hold
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TINY = sys.float_info.min
CASES: list[tuple[ColumnType, Any, Any, str | None, float]] = [
    (ColumnType.STRING, pa.string(), "", None, math.nan),
    (ColumnType.STRING, pa.string(), "a", "a", math.nan),
    (ColumnType.INT, pa.int64(), 0, "0", 0.0),
    (ColumnType.INT, pa.int64(), -7, "-7", -7.0),
    (ColumnType.INT, pa.int64(), SMALLEST, None, math.nan),
    (ColumnType.INT, pa.int64(), SMALLEST + 1, str(SMALLEST + 1), float(SMALLEST)),
    (ColumnType.BOOL, pa.bool_(), True, "true", 1.0),
    (ColumnType.BOOL, pa.bool_(), False, "false", 0.0),
    (ColumnType.FLOAT, pa.float64(), 0.1, "0.10000000000000001", 0.1),
    (ColumnType.FLOAT, pa.float64(), math.nan, None, math.nan),
    (ColumnType.FLOAT, pa.float64(), -math.inf, "-inf", -math.inf),
    (ColumnType.FLOAT, pa.float64(), TINY, "2.2250738585072014e-308", TINY),
    (ColumnType.FLOAT, pa.float64(), -TINY / 2, "-1.1125369292536007e-308", 0.0),
    (ColumnType.TIMESTAMP, pa.timestamp("us", "UTC"), 1_500_000, "1500000", 1.5),
    (ColumnType.TIMESTAMP, pa.timestamp("us", "UTC"), 1, "1", 1e-6),
    (ColumnType.TIMESTAMP, pa.timestamp("us", "UTC"), SMALLEST, None, math.nan),
]


@pytest.mark.parametrize(("kind", "stored", "value", "text", "number"), CASES)
@pytest.mark.parametrize("nulls", [0, 1])
def test_text_and_number(
    kind: ColumnType, stored: Any, value: Any, text: str | None, number: float, nulls: int
) -> None:
    plain = pa.int64() if kind is ColumnType.TIMESTAMP else stored
    values = pa.array([value, *[None] * nulls], plain).cast(stored)
    assert texts(values, kind).to_pylist() == [text, *[None] * nulls]
    if kind is not ColumnType.STRING:
        found = numbers(values, kind).tolist()
        assert found[0] == number or (math.isnan(number) and math.isnan(found[0]))
        assert all(math.isnan(each) for each in found[1:])


@given(st.integers(-(10**15), 10**16).map(lambda n: EPOCH + timedelta(microseconds=n)) | st.none())
def test_parts_of_a_time(time: datetime | None) -> None:
    values = pa.array([time, None], pa.timestamp("us", "UTC"))
    hour, weekday = (time.hour, time.weekday()) if time else (None, None)
    assert time_part(values, "hour").to_pylist() == [hour, None]
    assert time_part(values, "weekday").to_pylist() == [weekday, None]


@pytest.mark.parametrize(
    ("first", "last", "seconds"),
    [
        (NOW, NOW + 1, 1e-6),
        (NOW + 1, NOW, 0.0),
        (-LARGEST, NOW, CENTURIES),
        (LARGEST, -LARGEST, 0.0),
        (-LARGEST, LARGEST, 2 * CENTURIES),
        (INT_NULL, NOW, math.nan),
        (NOW, INT_NULL, math.nan),
    ],
)
def test_seconds_are_never_of_another_sign(first: int, last: int, seconds: float) -> None:
    (found,) = seconds_between(np.array([first]), np.array([last])).tolist()
    assert found == pytest.approx(seconds, rel=0.01, nan_ok=True)
