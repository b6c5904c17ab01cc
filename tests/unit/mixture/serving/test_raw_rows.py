"""JSON rows to the arrays of a SavedModel, and the errors for rows that do not fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from forebay.config.specs.sources import ColumnType
from forebay.errors import UsageError
from forebay.mixture.serving.raw_rows import raw_inputs
from forebay.mixture.serving.served_features import ServedFeatures

SMALLEST = -(2**63)
COLUMNS: dict[str, tuple[ColumnType, Any]] = {
    "name": (ColumnType.STRING, "x"),
    "whole": (ColumnType.INT, 2**63 - 1),
    "real": (ColumnType.FLOAT, 1),
    "flag": (ColumnType.BOOL, True),
    "at": (ColumnType.TIMESTAMP, "1970-01-01T00:00:01Z"),
    "words": (ColumnType.LIST_STRING, ["a", "b"]),
    "marks": (ColumnType.LIST_INT, []),
}
TYPES = {name: kind for name, (kind, _) in COLUMNS.items()}
ROW = {name: value for name, (_, value) in COLUMNS.items()}


def features(types: dict[str, ColumnType] = TYPES) -> ServedFeatures:
    return ServedFeatures.of("mixture", types, ["mixture"])


def inputs(*rows: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: array.tolist() for name, array in raw_inputs(features(), rows).items()}


def test_values_nulls_and_lists_of_every_type() -> None:
    assert inputs(ROW, dict.fromkeys(ROW) | {"flag": False, "real": 2.5}) == {
        "name": ["x", ""],
        "whole": [2**63 - 1, SMALLEST],
        "real": [1.0, 2.5],
        "flag": ["true", "false"],
        "at": [1_000_000, SMALLEST],
        "words": [["a", "b"], ["", ""]],
        "marks": [[], []],
    }
    found = raw_inputs(features(), [dict.fromkeys(ROW)])
    assert math.isnan(found["real"][0])
    assert found["flag"].tolist() == [""]
    assert (found["whole"].dtype, found["real"].dtype) == (np.int64, np.float64)
    lists = inputs(ROW | {"marks": [SMALLEST, 5, None]}, ROW | {"marks": [7]})
    assert lists["marks"] == [[SMALLEST, 5, SMALLEST], [7, SMALLEST, SMALLEST]]
    assert raw_inputs(features(), [])["marks"].shape == (0, 0)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("name", 1, "column 'name' (string): 1 is not text"),
        ("whole", True, "True is not a whole number"),
        ("whole", 1.0, "1.0 is not a whole number"),
        ("whole", 2**63, "does not fit into 64 bits"),
        ("whole", SMALLEST - 1, "does not fit into 64 bits"),
        ("real", False, "False is not a number"),
        ("real", "1", "'1' is not a number"),
        ("flag", 1, "1 is neither true nor false"),
        ("flag", "true", "'true' is neither true nor false"),
        ("at", 0, "0 is not text"),
        ("at", "soon", "write a time as"),
        ("words", "ab", "'ab' is not a list"),
        ("marks", ["a"], "'a' is not a whole number"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(column: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        raw_inputs(features(), [ROW, ROW | {column: value}])
    assert message in str(raised.value)


def test_columns_that_are_missing_or_unknown() -> None:
    without = {name: value for name, value in ROW.items() if name != "real"}
    with pytest.raises(UsageError, match=r"^row 2: column 'real' is missing"):
        raw_inputs(features(), [ROW, without])
    with pytest.raises(UsageError, match=r"^row 1: .* no column 'wole' \(did you mean 'whole'\?\)"):
        raw_inputs(features(), [ROW | {"wole": 1}])
    with pytest.raises(UsageError, match=r"no column 'zzzzzz'; it reads name, whole"):
        raw_inputs(features(), [ROW | {"zzzzzz": 1}])
    assert inputs(ROW | {"whole": SMALLEST})["whole"] == [SMALLEST]


def test_inputs_have_names_that_tensorflow_allows() -> None:
    names = ["plain", "a b", "a-b", "A_b", "1st", "_x", "a_b_2", "class", "self", "column_from"]
    names += ["from", "match", "name"]
    found = features(dict.fromkeys(names, ColumnType.INT)).columns
    inputs = [found[name].input for name in names]
    assert inputs[:7] == ["plain", "a_b", "a_b_2", "A_b_3", "column_1st", "column__x", "a_b_2_2"]
    words = ["column_class", "column_self", "column_from", "column_from_2", "match", "name"]
    assert inputs[7:] == words
