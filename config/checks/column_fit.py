"""Whether a column's declared type fits what a dataset does with it: encodings and label rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forebay.config.specs.features import CrossFeature, FeatureSpec, VocabularyFeature
from forebay.config.specs.labels import LabelSpec, LabelValues
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.config.yaml.positions import KeyPath

_WHOLE_NUMBER = re.compile(r"^(0|-?[1-9]\d*)$")
# What every source and the SavedModel read as null, as a text.
_NULLS = {ColumnType.STRING: "", ColumnType.INT: str(-(2**63))}
_ID_TYPES = {
    ColumnType.STRING,
    ColumnType.INT,
    ColumnType.BOOL,
    ColumnType.LIST_STRING,
    ColumnType.LIST_INT,
}
_NUMBER_TYPES = {ColumnType.INT, ColumnType.FLOAT, ColumnType.BOOL}
_FITTING: dict[str, set[ColumnType]] = {
    "hash": _ID_TYPES,
    "vocabulary": _ID_TYPES,
    "cross": {ColumnType.STRING, ColumnType.INT, ColumnType.BOOL},
    "bucketise": {*_NUMBER_TYPES, ColumnType.LIST_INT, ColumnType.LIST_FLOAT},
    "numeric": _NUMBER_TYPES,
}
_WAY_OUT = {
    ColumnType.FLOAT: "use bucketise or numeric",
    ColumnType.STRING: "use hash or vocabulary",
    ColumnType.LIST_STRING: "use hash or vocabulary",
    ColumnType.LIST_INT: "use hash, vocabulary or bucketise",
    ColumnType.LIST_FLOAT: "use bucketise",
}
_VALUE_TYPES: dict[ColumnType, tuple[type, ...]] = {
    ColumnType.STRING: (str,),
    ColumnType.INT: (int, float),
    ColumnType.FLOAT: (int, float),
    ColumnType.BOOL: (bool,),
}


@dataclass(frozen=True)
class Misfit:
    """What does not fit: the key below the feature or label, the message, whether to quote it."""

    path: KeyPath
    code: str
    message: str
    quote: bool = False


def feature_misfits(feature: FeatureSpec, column: str, kind: ColumnType) -> Iterator[Misfit]:
    part = None if isinstance(feature, CrossFeature) else feature.part
    if part is not None:
        if kind is not ColumnType.TIMESTAMP:
            message = (
                f"part: {part} needs a timestamp, but column {column!r} is {kind}: remove `part`"
            )
            yield Misfit(("part",), "part-type", message)
        return
    if kind is ColumnType.TIMESTAMP:
        way_out = "give `part: hour` or `part: weekday`"
        if isinstance(feature, CrossFeature):
            way_out = "a cross takes string, int and bool columns"
        message = f"column {column!r} is a timestamp, not an id or a number: {way_out}"
        yield Misfit(("encode",), "encode-type", message)
    elif kind not in _FITTING[feature.encode]:
        way_out = _WAY_OUT.get(kind, "")
        message = f"encode: {feature.encode} does not take column {column!r} of type {kind}"
        yield Misfit(("encode",), "encode-type", f"{message}: {way_out}")
    elif isinstance(feature, VocabularyFeature):
        yield from _vocabulary_misfits(feature, column, kind)


def _vocabulary_misfits(
    feature: VocabularyFeature, column: str, kind: ColumnType
) -> Iterator[Misfit]:
    for index, value in enumerate(feature.values):
        text = str(value)
        if _is_null(value, kind):
            message = f"value {value!r} is null, and null has id 0 already: remove it"
            yield Misfit(("values", index), "vocabulary-null", message)
            continue
        if kind is ColumnType.BOOL and text not in {"true", "false"}:
            expected = '"true" or "false"'
        elif kind in {ColumnType.INT, ColumnType.LIST_INT} and not _WHOLE_NUMBER.match(text):
            expected = "a whole number"
        else:
            continue
        message = f"value {value!r} never occurs: column {column!r} is {kind}, write {expected}"
        yield Misfit(("values", index), "vocabulary-type", message)


def _is_null(value: bool | float | str, kind: ColumnType) -> bool:  # noqa: FBT001
    return str(value) == _NULLS.get(LIST_ITEMS.get(kind, kind))


def label_misfits(label: LabelSpec, kind: ColumnType) -> Iterator[Misfit]:
    column = f"column {label.column!r} is {kind}"
    if kind in LIST_ITEMS:
        yield Misfit(("column",), "label-type", f"{column}, but a label is a single value")
        return
    for key in ("greater_than", "less_than"):
        if getattr(label, key) is not None and kind in {ColumnType.STRING, ColumnType.BOOL}:
            message = f"{key} compares numbers, and {column}: write `positive:` instead"
            yield Misfit((key,), "label-rule", message)
    bounded = label.greater_than is not None or label.less_than is not None
    if kind is ColumnType.TIMESTAMP and not bounded:
        message = f"{column}: write greater_than or less_than (seconds since 1970)"
        yield Misfit(("column",), "label-rule", message)
    elif kind is ColumnType.STRING and label.positive is None and not bounded:
        message = f"{column}: write `positive:` with the texts that are positive"
        yield Misfit(("column",), "label-rule", message)
    elif label.positive is not None:
        yield from _value_misfits(label, "positive", label.positive, kind)
        if label.negative is not None:
            yield from _value_misfits(label, "negative", label.negative, kind)
            yield from _both_misfits(label.positive, label.negative)


def _both_misfits(positive: LabelValues, negative: LabelValues) -> Iterator[Misfit]:
    for index, value in enumerate(_listed(negative)):
        if value in _listed(positive):
            path: KeyPath = ("negative", index) if isinstance(negative, list) else ("negative",)
            yield Misfit(path, "label-rule", f"{value!r} is also listed as positive: remove one")


def _listed(values: LabelValues) -> list[bool | int | float | str]:
    return values if isinstance(values, list) else [values]


def _value_misfits(
    label: LabelSpec, key: str, listed: LabelValues, kind: ColumnType
) -> Iterator[Misfit]:
    if listed == []:
        yield Misfit((key,), "label-rule", f"no value is listed: no row would be {key}")
    for index, value in enumerate(_listed(listed)):
        wanted = _VALUE_TYPES[kind]
        path: KeyPath = (key, index) if isinstance(listed, list) else (key,)
        if _is_null(value, kind):
            message = (
                f"{value!r} is null, and a row whose label is null has none (label_null of its "
                "source): remove it, or store another value"
            )
            yield Misfit(path, "label-null", message)
            continue
        if isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool)):
            continue
        message = f"{value!r} is not a value of column {label.column!r}, which is {kind}"
        quote = kind is ColumnType.STRING
        if isinstance(value, bool):
            message = f"unquoted yes, no, on, off, true and false are bools in YAML: {message}"
        yield Misfit(path, f"{key}-type", message + (": quote it" if quote else ""), quote)
