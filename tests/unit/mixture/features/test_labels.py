"""Single stored values against plain Python: null, text, number, part, and label by every rule."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.sources import ColumnType
from forebay.mixture.features.labels import labels
from forebay.mixture.features.values import INT_NULL, numbers, seconds_between, texts, time_part

SMALLEST = -(2**63)
INTS = st.sampled_from([SMALLEST, SMALLEST + 1, -2, -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1])
FLOATS = st.sampled_from([-1.5, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, math.inf, math.nan])
WORDS = st.sampled_from(["", "0", "1", "a", "b"])
# Of each type: in Arrow, values, and what may be called positive.
KINDS: dict[ColumnType, tuple[Any, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    ColumnType.INT: (
        pa.int64(),
        INTS,
        INTS.filter(lambda n: n != SMALLEST)
        | st.sampled_from([0.5, 2.0, -(2.0**63), 2.0**63, float(2**64)]),
    ),
    ColumnType.FLOAT: (pa.float64(), FLOATS, FLOATS.filter(math.isfinite)),
    ColumnType.BOOL: (pa.bool_(), st.booleans(), st.booleans()),
    ColumnType.STRING: (pa.string(), WORDS, WORDS.filter(bool)),
}
Case = tuple[ColumnType, list[Any], LabelSpec]
NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])


def meaning(value: Any, rule: LabelSpec) -> float:
    if value in {None, "", SMALLEST} or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if rule.positive is not None:
        listed = rule.positive if isinstance(rule.positive, list) else [rule.positive]
        return float(any(value == one for one in listed))
    if rule.greater_than is not None:
        return float(value > rule.greater_than)
    if rule.less_than is not None:
        return float(value < rule.less_than)
    return float(value != 0)


@st.composite
def rules(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(list(KINDS)))
    _, drawn, one = KINDS[kind]
    values = draw(st.lists(drawn | st.none(), min_size=1, max_size=8))
    several = st.lists(one, max_size=3)
    fields: list[dict[str, st.SearchStrategy[Any]]] = [{"positive": one}, {"positive": several}]
    if kind in {ColumnType.INT, ColumnType.FLOAT}:
        fields += [{"greater_than": NUMBERS}, {"less_than": NUMBERS}]
    if kind is not ColumnType.STRING:
        fields.append({})
    rule = draw(st.fixed_dictionaries(draw(st.sampled_from(fields))))
    return kind, values, LabelSpec.model_validate({"column": "c", **rule})


@given(rules())
@example((ColumnType.INT, [2**53, 2**53 + 1], LabelSpec(column="c", positive=2**53 + 1)))
@example((ColumnType.INT, [0, None], LabelSpec(column="c", positive=[0])))
@example((ColumnType.INT, [-(2**63), 0], LabelSpec(column="c", positive=[-(2**63)])))
@example((ColumnType.INT, [2**63 - 1, 2**62], LabelSpec(column="c", positive=[2**62])))
@example((ColumnType.INT, [0, 1], LabelSpec(column="c", positive=[0.5, 2.0**63, -(2.0**64)])))
@example((ColumnType.INT, [0, 1], LabelSpec(column="c", positive=["0", 1])))
def test_a_label_is_what_the_rule_says_of_the_value(case: Case) -> None:
    kind, values, rule = case
    found = labels(pa.array(values, KINDS[kind][0]), rule, kind)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [meaning(value, rule) for value in values])


@pytest.mark.parametrize(("bound", "wanted"), [(0.0, [1, 0]), (1.0, [0, 0]), (0.5, [1, 0])])
def test_a_time_is_compared_in_seconds(bound: float, wanted: list[float]) -> None:
    times = pa.array([1_000_000, 0], pa.timestamp("us", "UTC"))
    found = labels(times, LabelSpec(column="c", greater_than=bound), ColumnType.TIMESTAMP)
    assert found.tolist() == wanted


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
