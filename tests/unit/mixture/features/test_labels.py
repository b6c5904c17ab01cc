"""Label rules of every column type against their plain meaning, one value at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.sources import ColumnType
from forebay.mixture.features.labels import labels

SMALLEST = -(2**63)
INTS = st.sampled_from([SMALLEST, SMALLEST + 1, -2, -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1])
FLOATS = st.sampled_from([-1.5, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, math.inf, math.nan])
WORDS = st.sampled_from(["", "0", "1", "a", "b"])
ARROW = {
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.BOOL: pa.bool_(),
    ColumnType.STRING: pa.string(),
}
VALUES: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.INT: INTS,
    ColumnType.FLOAT: FLOATS,
    ColumnType.BOOL: st.booleans(),
    ColumnType.STRING: WORDS,
}
Case = tuple[ColumnType, list[Any], LabelSpec]
NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
POSITIVES: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.INT: INTS.filter(lambda n: n != SMALLEST)
    | st.sampled_from([0.5, 2.0, -(2.0**63), 2.0**63, float(2**64)]),
    ColumnType.FLOAT: FLOATS.filter(math.isfinite),
    ColumnType.BOOL: st.booleans(),
    ColumnType.STRING: WORDS.filter(bool),
}


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
    kind = draw(st.sampled_from(list(ARROW)))
    values = draw(st.lists(VALUES[kind] | st.none(), min_size=1, max_size=8))
    one, several = POSITIVES[kind], st.lists(POSITIVES[kind], max_size=3)
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
    found = labels(pa.array(values, ARROW[kind]), rule, kind)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [meaning(value, rule) for value in values])


@pytest.mark.parametrize(("bound", "wanted"), [(0.0, [1, 0]), (1.0, [0, 0]), (0.5, [1, 0])])
def test_a_time_is_compared_in_seconds(bound: float, wanted: list[float]) -> None:
    times = pa.array([1_000_000, 0], pa.timestamp("us", "UTC"))
    found = labels(times, LabelSpec(column="c", greater_than=bound), ColumnType.TIMESTAMP)
    assert found.tolist() == wanted
