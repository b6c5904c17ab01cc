"""The names of ids."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from forebay.config.specs.features import FeatureSpec
from forebay.executors.judging.event_figures import slice_name

HASH = {"encode": "hash", "buckets": 9}
WORDS = {"encode": "vocabulary", "values": ["red", 7]}
STEPS = {"encode": "bucketise", "boundaries": [1, 2.5]}


@pytest.mark.parametrize(
    ("feature", "names"),
    [
        (HASH, ["missing", "bucket 1", "bucket 2"]),
        (WORDS, ["missing", "other values", "red", "7"]),
        (STEPS, ["missing", "below 1", "1 to 2.5", "2.5 or more"]),
    ],
)
def test_each_id_has_a_name(feature: dict[str, object], names: list[str]) -> None:
    spec: FeatureSpec = TypeAdapter(FeatureSpec).validate_python(feature)
    assert [slice_name(spec, value) for value in range(len(names))] == names


@pytest.mark.parametrize(
    ("feature", "names"),
    [
        (
            {"encode": "vocabulary", "values": ["missing", "other values", "all others", "'x'"]},
            ["'missing'", "'other values'", "'all others'", "''x''"],
        ),
        (
            {"encode": "bucketise", "boundaries": [1_000_000, 1_000_001, 1_000_001.5]},
            ["below 1e+06", "1e+06 to 1000001", "1000001 to 1000001.5", "1000001.5 or more"],
        ),
    ],
)
def test_no_two_ids_have_one_name(feature: dict[str, object], names: list[str]) -> None:
    spec: FeatureSpec = TypeAdapter(FeatureSpec).validate_python(feature)
    first = 2 if feature["encode"] == "vocabulary" else 1
    ids = range(first + len(names))
    found = [slice_name(spec, value) for value in ids]
    assert (found[first:], len({*found, "all others"})) == (names, len(ids) + 1)
