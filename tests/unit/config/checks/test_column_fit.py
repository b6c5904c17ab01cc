"""What is reported for features and labels that do not fit their columns."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.config.checks.column_fit import feature_misfits, label_misfits
from forebay.config.specs.features import CrossFeature, HashFeature, VocabularyFeature
from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.sources import ColumnType


def test_a_timestamp_needs_a_part_and_a_cross_takes_none() -> None:
    hashed = HashFeature(encode="hash", buckets=9)
    cross = CrossFeature(encode="cross", columns=["at", "user"], buckets=9)
    kind = ColumnType.TIMESTAMP
    (alone,), (crossed,) = (list(feature_misfits(one, "at", kind)) for one in (hashed, cross))
    assert alone.message.endswith("give `part: hour` or `part: weekday`")
    assert crossed.message.endswith("a cross takes string, int and bool columns")


@pytest.mark.parametrize(
    ("positive", "kind", "message"),
    [
        (5, ColumnType.STRING, "5 is not a value of column 'c', which is string: quote it"),
        ("x", ColumnType.INT, "'x' is not a value of column 'c', which is int"),
        (True, ColumnType.INT, "bools in YAML: True is not a value of column 'c', which is int"),
    ],
)
def test_a_positive_value_of_another_type(positive: Any, kind: ColumnType, message: str) -> None:
    label = LabelSpec(column="c", positive=positive)
    (misfit,) = label_misfits(label, kind)
    assert misfit.message.endswith(message)
    assert misfit.message.startswith("unquoted yes") is isinstance(positive, bool)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        *(("", ColumnType.STRING), (-(2**63), ColumnType.INT)),
        *((str(-(2**63)), ColumnType.LIST_INT), ("", ColumnType.LIST_STRING)),
    ],
)
def test_null_is_no_value_of_a_vocabulary(listed: str | int, kind: ColumnType) -> None:
    feature = VocabularyFeature(encode="vocabulary", values=["7", listed])
    (misfit,) = feature_misfits(feature, "c", kind)
    assert misfit.path == ("values", 1)
    assert misfit.message == f"value {listed!r} is null, and null has id 0 already: remove it"


@pytest.mark.parametrize(("value", "kind"), [("", ColumnType.STRING), (-(2**63), ColumnType.INT)])
@pytest.mark.parametrize("key", ["positive", "negative"])
def test_null_is_no_label(value: Any, kind: ColumnType, key: str) -> None:
    other = "x" if kind is ColumnType.STRING else 5
    label = LabelSpec.model_validate({"column": "c", "positive": other, key: [7, value]})
    misfits = [each for each in label_misfits(label, kind) if each.code == "label-null"]
    assert [each.path for each in misfits] == [(key, 1)]
    assert f"{value!r} is null, and a row whose label is null has none" in misfits[0].message
