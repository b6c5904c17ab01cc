"""Stored types become declared ones; values that do not fit are named."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cpu_limits import cpu_limit

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES
from forebay.datatasks.sources.common.values.casting import (
    castable,
    column_problem,
    fit,
    fit_values,
)
from forebay.datatasks.sources.common.values.times import UNKNOWN, times_of

INT, FLOAT, STRING, BOOL = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING, ColumnType.BOOL
TIME = ColumnType.TIMESTAMP
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGE: list[Any] = [[1], [2**63], None]
LISTS = [["a", None], None, []]
TEXTS = ["2026-03-01", "2026-03-01 12:00:00", "2026-03-01T13:00:00+01:00", None]


def fitted(array: pa.Array, declared: ColumnType) -> tuple[list[Any], dict[int, str]]:
    assert castable(array.type, declared)
    found = fit(pa.record_batch([array], names=["x"]), ["x"], {"x": declared})
    found.batch.validate(full=True)
    assert found.batch.schema.field("x").type == ARROW_TYPES[declared]
    return found.batch.column(0).to_pylist(), found.bad


@pytest.mark.parametrize(
    ("array", "declared", "values"),
    [
        (pa.array([1, None], pa.int8()), INT, [1, None]),
        (pa.array([1, None], pa.uint64()), INT, [1, None]),
        (pa.array([3.0, None]), INT, [3, None]),
        (pa.array([1.5, None], pa.float16()), FLOAT, [1.5, None]),
        (pa.array([2**60 + 1, None]), FLOAT, [float(2**60), None]),
        (pa.array([Decimal("1.25"), None]), FLOAT, [1.25, None]),
        (pa.array(["a", None], pa.large_string()), STRING, ["a", None]),
        (pa.array(["a", None], pa.string_view()), STRING, ["a", None]),
        (pa.array(["a", None]).dictionary_encode(), STRING, ["a", None]),
        (pa.array([True, None]), BOOL, [True, None]),
        (pa.array([NOON, None]).dictionary_encode(), TIME, [NOON, None]),
        (pa.array(["2026-03-01 12:00:00", None]).dictionary_encode(), TIME, [NOON, None]),
        (pa.array([date(2026, 3, 1), None]), TIME, [NOON.replace(hour=0), None]),
        (pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("s")), TIME, [NOON, None]),
        (pa.array([NOON, None], pa.timestamp("ns", "Asia/Tokyo")), TIME, [NOON, None]),
        (pa.array([1_999, None], pa.timestamp("ns")), TIME, [EPOCH.replace(microsecond=1), None]),
        (pa.array(TEXTS), TIME, [NOON.replace(hour=0), NOON, NOON, None]),
        (pa.array([[1], None, []], pa.list_(pa.int16())), ColumnType.LIST_INT, [[1], None, []]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), ColumnType.LIST_FLOAT, [[1, 2], None]),
        (pa.array(LISTS, pa.large_list(pa.large_string())), ColumnType.LIST_STRING, LISTS),
        (pa.array([[], None], pa.list_(pa.null())), ColumnType.LIST_INT, [[], None]),
    ],
)
def test_types_that_fit(array: pa.Array, declared: ColumnType, values: list[Any]) -> None:
    assert fitted(array, declared) == (values, {})
    assert fitted(array.slice(1), declared) == (values[1:], {})


@pytest.mark.parametrize("declared", list(ColumnType))
def test_a_column_without_a_type_is_all_null(declared: ColumnType) -> None:
    assert fitted(pa.nulls(3), declared) == ([None] * 3, {})


@pytest.mark.parametrize(
    ("array", "declared", "values", "bad"),
    [
        (pa.array([1, 2**63, None, 2], pa.uint64()), INT, [1, None, None, 2], {1}),
        (pa.array([1.0, 2.5, float("nan"), None]), INT, [1, None, None, None], {1, 2}),
        (pa.array(["2026-03-01", "soon", None]), TIME, [NOON.replace(hour=0), None, None], {1}),
        (pa.array([0, 2**50, None], pa.timestamp("s")), TIME, [EPOCH, None, None], {1}),
        (pa.array(LARGE, pa.list_(pa.uint64())), ColumnType.LIST_INT, [[1], None, None], {1}),
    ],
)
def test_values_that_do_not_fit(
    array: pa.Array, declared: ColumnType, values: list[Any], bad: set[int]
) -> None:
    found, reasons = fitted(array, declared)
    assert (found, set(reasons)) == (values, bad)
    assert all("'x'" in reason for reason in reasons.values())


def test_a_row_that_fits_in_no_column_is_bad_for_the_first_one() -> None:
    batch = pa.record_batch({"x": pa.array([2**63], pa.uint64()), "y": pa.array([1.5])})
    assert "'x'" in fit(batch, ["x", "y"], {"x": INT, "y": INT}).bad[0]
    assert "'y'" in fit(batch, ["y", "x"], {"x": INT, "y": INT}).bad[0]


@given(st.lists(st.one_of(st.none(), st.integers(0, 2**64 - 1)), max_size=60))
def test_exactly_the_values_that_do_not_fit_are_named(values: list[int | None]) -> None:
    found, bad = fitted(pa.array(values, pa.uint64()), INT)
    wrong = {i for i, value in enumerate(values) if value is not None and value >= 2**63}
    assert set(bad) == wrong
    assert found == [None if i in wrong else value for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        *((pa.string(), INT), (pa.int64(), STRING), (pa.int8(), BOOL), (pa.int64(), TIME)),
        *((pa.list_(pa.string()), ColumnType.LIST_INT), (pa.struct([("a", pa.int8())]), STRING)),
        (pa.string(), ColumnType.LIST_STRING),
        # One bit of a file was wrong, and a cast ended the process.
        (pa.decimal128(20, 33_554_434), ColumnType.FLOAT),
        (pa.decimal256(20, -(2**31)), ColumnType.FLOAT),
        (pa.list_(pa.decimal128(20, 77)), ColumnType.LIST_FLOAT),
    ],
)
def test_types_that_would_need_guessing(stored: pa.DataType, declared: ColumnType) -> None:
    assert not castable(stored, declared)
    problem = column_problem(pa.schema([("x", stored)]), "x", declared)
    assert problem == f"column 'x' is stored as {stored}, which cannot be read as {declared.value}"


def test_a_missing_column_comes_with_a_guess() -> None:
    schema = pa.schema([("carrier", pa.string()), ("a", pa.int8())])
    assert "did you mean 'carrier'" in column_problem(schema, "carier", STRING)
    assert "it has carrier, a" in column_problem(schema, "zzzzzzz", STRING)
    assert column_problem(pa.schema([]), "a", STRING).endswith("it has no columns at all")
    names = [f"{n}{n}" for n in range(9)]
    eight, nine = (pa.schema([(name, pa.int8()) for name in names[:count]]) for count in (8, 9))
    assert column_problem(eight, "zzzzzzz", STRING).endswith("66, 77")
    assert column_problem(nine, "zzzzzzz", STRING).endswith("66, 77 and 1 more")
    twice = pa.schema([("a", pa.int8()), ("a", pa.int8())])
    assert "more than once" in column_problem(twice, "a", INT)


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**50), 2**50)), max_size=30),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_times_round_down_to_microseconds(values: list[int | None], unit: str) -> None:
    per = {"s": 1e6, "ms": 1e3, "us": 1, "ns": 1e-3}[unit]
    limit = 2**62 / max(per, 1)
    kept = [value if value is None or abs(value) < limit else 0 for value in values]
    times = times_of(pa.array(kept, pa.timestamp(unit)))
    expected = [UNKNOWN if v is None else v // 1000 if unit == "ns" else v * int(per) for v in kept]
    assert times.tolist() == expected


def test_a_reason_is_at_most_160_characters_long() -> None:
    _, bad = fitted(pa.array(["x" * 500]), TIME)
    assert bad[0].startswith("column 'x' as timestamp: write a time as 2026-03-01 or ")
    assert len(bad[0].removeprefix("column 'x' as timestamp: ")) <= 160


INT64_BORDERS = [2.0**63, -(2.0**63), 2.0**53 + 1, -0.0, float("inf"), float("-inf"), float("nan")]
ODD_TEXTS = [
    *("2026-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "2026-04-31", "0000-01-01"),
    *("2026-03-01T12", "2026-03-01T12:30", "2026-03-01T24:00", "2026-03-01T23:59:60"),
    *("2026-03-01T12+01", "2026-03-01T12:30-05", "2026-03-01 12:30:10+2359", "2026-03-01Z"),
    *("2026-03-01T12:30:10.123456", "2026-03-01T12:30:10.1234567", "2026-03-01T12:30:10."),
    *("2026-03-01T12:30:10+24:00", "2026-03-01t12:00:00", " 2026-03-01", "2026-03-01\n", "", "Z"),
    *("9999-12-31T23:59:59-23:59", "-001-01-01", "2026-3-1", "2026-13-01", "2026-00-10"),
]


def one_by_one(array: pa.Array, declared: ColumnType) -> set[int]:
    """The rows that a batch of their own does not hold."""
    return {row for row in range(len(array)) if bad_rows(array.slice(row, 1), declared)}


def bad_rows(array: pa.Array, declared: ColumnType) -> set[int]:
    """Those of one batch; nobody looks at values, which may be before or after Python's years."""
    return set(fit(pa.record_batch([array], names=["x"]), ["x"], {"x": declared}).bad)


INT64 = st.integers(-(2**63), 2**63 - 1)
LISTS_OF_INTS = st.lists(st.integers(0, 2**64 - 1), max_size=3)
STORED_AS = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}


def some(
    values: list[Any], more: st.SearchStrategy[Any], stored: pa.DataType, declared: ColumnType
) -> st.SearchStrategy[tuple[pa.Array, ColumnType]]:
    drawn = st.one_of(st.none(), st.sampled_from(values), more)
    return st.lists(drawn, min_size=1, max_size=30).map(
        lambda each: (pa.array(each, STORED_AS.get(stored, stored)).cast(stored), declared)
    )


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        some(INT64_BORDERS, st.floats(), pa.float64(), INT),
        some([0.5, 2.0], st.floats(width=16), pa.float16(), INT),
        some(ODD_TEXTS, st.datetimes().map(str), pa.string(), TIME),
        some([2**63 // 10**6], INT64, pa.timestamp("s"), TIME),
        some([2**63 // 10**3], INT64, pa.timestamp("ms"), TIME),
        some([2**63 // 86_400_000_000], st.integers(-(2**31), 2**31 - 1), pa.date32(), TIME),
        some([2**63 // 1000], st.integers(-(2**62), 2**62), pa.date64(), TIME),
        some([[2**63], [1, None]], LISTS_OF_INTS, pa.list_(pa.uint64()), ColumnType.LIST_INT),
    )
)
def test_values_beside_others_fit_as_they_do_alone(case: tuple[pa.Array, ColumnType]) -> None:
    array, declared = case
    for part in (array, array.slice(len(array) // 2)):
        assert bad_rows(part, declared) == one_by_one(part, declared)


@pytest.mark.parametrize(
    ("values", "declared"),
    [
        (pa.array(np.full(200_000, 2**63, np.uint64)), INT),
        (pa.array([f"soon {number}" for number in range(200_000)]), TIME),
    ],
)
def test_very_many_bad_values_are_quick(values: pa.Array, declared: ColumnType) -> None:
    with cpu_limit("one cast for each would take more than 4 s", 2):
        bad = fit(pa.record_batch([values], names=["x"]), ["x"], {"x": declared}).bad
    assert len(bad) == len(values)
    assert "9223372036854775808" in bad[0] or "soon 0" in bad[0]
    assert "like 199,999 others of its batch" in bad[199_999]


def test_values_of_python_as_declared() -> None:
    """Of storage without types any value may come, and none is changed without a word."""
    declared = {"n": ColumnType.INT, "text": ColumnType.STRING, "many": ColumnType.LIST_INT}
    values: dict[str, list[Any]] = {
        "n": [1, "one", 1.5, 2.0, None, 2**70],
        "text": ["a", "b", 7, "\ud800", None, "c"],
        "many": ["[1]", None, "[]", "[1.5]", "[" * 100_000, "[null]"],
    }
    found = fit_values(values, declared, {ColumnType.LIST_INT: json.loads})
    assert found.batch.to_pydict() == {
        "n": [1, None, None, 2, None, None],
        "text": ["a", "b", None, None, None, "c"],
        "many": [[1], None, [], None, None, [None]],
    }
    assert list(found.bad) == [1, 2, 5, 3, 4]
    assert found.bad[2] == "column 'n' as int: 1.5 would be 1"
