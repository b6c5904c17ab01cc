"""Features: how a stored column becomes a number for the model."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from forebay.config.specs.base import Spec
from forebay.system.names import shown

TimePart = Literal["hour", "weekday"]
Buckets = Annotated[
    int, Field(ge=2, le=2**31 - 1, description="Number of ids, including the one for null")
]
Dimension = Annotated[int, Field(ge=1, le=1024, description="Length of each id's embedding")]
_RESERVED_IDS = 2  # ids of null and of a value outside the vocabulary or the boundaries


class _Column(Spec):
    """A feature of one column; without `column` the feature's name is the column."""

    column: str | None = Field(
        default=None, description="Column to read; by default the feature's own name"
    )
    part: TimePart | None = Field(
        default=None,
        description="Read this part of a timestamp column, in UTC, instead of its value: hour "
        "0-23, or weekday 0 (Monday) to 6",
    )


class HashFeature(_Column):
    """Fingerprint64 of the value's text modulo `buckets` - 1, plus 1; 0 is null. Lists allowed."""

    encode: Literal["hash"] = Field(
        description="Fingerprint64 of the value's text, modulo `buckets` - 1, plus 1; 0 is null. "
        "Lists are allowed"
    )
    buckets: Buckets
    dimension: Dimension = 8


class VocabularyFeature(_Column):
    """2 + position in `values`; 1 for any other value, 0 for null. Lists allowed."""

    encode: Literal["vocabulary"] = Field(
        description="2 + the value's position in `values`; 1 for any other value, 0 for null, "
        "which an empty text is too. Lists are allowed"
    )
    values: list[str | int] = Field(min_length=1, description="The values that get their own ids")
    dimension: Dimension = 8

    @field_validator("values")
    @classmethod
    def _distinct(cls, values: list[str | int]) -> list[str | int]:
        texts = [str(value) for value in values]
        if len(set(texts)) != len(texts):
            twice, _ = Counter(texts).most_common(1)[0]
            raise ValueError(f"value {shown(twice)} is in the vocabulary twice")
        return values


class BucketiseFeature(_Column):
    """1 + number of `boundaries` at or below the value; 0 for null."""

    encode: Literal["bucketise"] = Field(
        description="1 + the number of `boundaries` at or below the value; 0 for null"
    )
    boundaries: list[float] = Field(min_length=1, description="Ascending borders between buckets")
    dimension: Dimension = Field(default=8, description="Length of each bucket's embedding")

    @field_validator("boundaries")
    @classmethod
    def _ascending(cls, values: list[float]) -> list[float]:
        if any(low >= high for low, high in pairwise(values)):
            raise ValueError("boundaries must ascend")
        return values


class NumericFeature(_Column):
    """(f(value) - `mean`) / `scale` as a float, f the `transform`; null becomes `missing`."""

    encode: Literal["numeric"] = Field(
        description="(f(value) - `mean`) / `scale` as a float, where f is `transform`"
    )
    transform: Literal["none", "log1p"] = Field(
        default="none",
        description="Applied first: `log1p` for counts and amounts that span several orders of "
        "magnitude",
    )
    mean: float = Field(default=0.0, description="Subtracted after the transform")
    scale: float = Field(
        default=1.0, gt=0, description="Divides the result: usually the standard deviation"
    )
    missing: float = Field(default=0.0, description="The encoded value of a null")


class CrossFeature(Spec):
    """Hash of the texts of several columns, joined with U+001F; otherwise as `hash`."""

    encode: Literal["cross"] = Field(
        description="Hash of the texts of several columns, joined with U+001F; otherwise as `hash`"
    )
    columns: list[str] = Field(min_length=2, description="Columns to combine, at least two")
    buckets: Buckets
    dimension: Dimension = 8

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("a cross may name each column only once")
        return self


FeatureSpec = HashFeature | VocabularyFeature | BucketiseFeature | NumericFeature | CrossFeature


def feature_columns(name: str, feature: FeatureSpec) -> list[str]:
    if isinstance(feature, CrossFeature):
        return list(feature.columns)
    return [feature.column or name]


def cardinality(feature: FeatureSpec) -> int | None:
    """How many ids a feature has; None for a number."""
    if isinstance(feature, NumericFeature):
        return None
    if isinstance(feature, VocabularyFeature):
        return _RESERVED_IDS + len(feature.values)
    if isinstance(feature, BucketiseFeature):
        return _RESERVED_IDS + len(feature.boundaries)
    return feature.buckets
