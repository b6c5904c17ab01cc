"""What the ids of a feature mean, for people."""

from __future__ import annotations

from forebay.config.features import BucketiseFeature, FeatureSpec, VocabularyFeature

MISSING, OTHERS = "missing", "other values"


def slice_name(feature: FeatureSpec, value: int) -> str:
    """The value that an id (see `features`) stands for; of a hash only the bucket is known."""
    if value == 0:
        return MISSING
    if isinstance(feature, VocabularyFeature):
        return OTHERS if value == 1 else str(feature.values[value - 2])
    if isinstance(feature, BucketiseFeature):
        return _range(feature.boundaries, value - 1)
    return f"bucket {value}"


def _range(boundaries: list[float], below: int) -> str:
    """below: how many boundaries are at or below the value."""
    if below == 0:
        return f"below {boundaries[0]:g}"
    if below == len(boundaries):
        return f"{boundaries[-1]:g} or more"
    return f"{boundaries[below - 1]:g} to {boundaries[below]:g}"
