"""What the ids of a feature mean, for people."""

from __future__ import annotations

from forebay.config.features import BucketiseFeature, FeatureSpec, VocabularyFeature

MISSING, OTHERS, REST = "missing", "other values", "all others"
_QUOTE = "'"


def slice_name(feature: FeatureSpec, value: int) -> str:
    """The value that an id (see `features`) stands for; for a hash only the bucket is known.

    No two ids of a feature share a name: a value that reads like one of the fixed names is quoted.
    """
    if value == 0:
        return MISSING
    if isinstance(feature, VocabularyFeature):
        return OTHERS if value == 1 else _plain(str(feature.values[value - 2]))
    if isinstance(feature, BucketiseFeature):
        return _range(feature.boundaries, value - 1)
    return f"bucket {value}"


def _plain(value: str) -> str:
    meant = value in {MISSING, OTHERS, REST} or value.startswith(_QUOTE)
    return f"{_QUOTE}{value}{_QUOTE}" if meant else value


def _range(boundaries: list[float], below: int) -> str:
    """below: how many boundaries are at or below the value."""
    if below == 0:
        return f"below {_number(boundaries[0])}"
    if below == len(boundaries):
        return f"{_number(boundaries[-1])} or more"
    return f"{_number(boundaries[below - 1])} to {_number(boundaries[below])}"


def _number(value: float) -> str:
    """The shortest text that tells it from every other number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value).removesuffix(".0")
