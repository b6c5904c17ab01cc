"""The names of ids."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from forebay.config.specs.features import FeatureSpec
from forebay.executors.judging.event_figures import slice_name

WORDS = ["missing", "other values", "all others", "'x'"]
CLOSE = [1_000_000, 1_000_001, 1_000_001.5]


@pytest.mark.parametrize(
    ("feature", "names"),
    [
        ({"encode": "hash", "buckets": 9}, ["bucket 1", "bucket 2"]),
        ({"encode": "vocabulary", "values": ["red", 7]}, ["other values", "red", "7"]),
        (
            {"encode": "vocabulary", "values": WORDS},
            ["other values", "'missing'", "'other values'", "'all others'", "''x''"],
        ),
        ({"encode": "bucketise", "boundaries": [1, 2.5]}, ["below 1", "1 to 2.5", "2.5 or more"]),
        (
            {"encode": "bucketise", "boundaries": CLOSE},
            ["below 1e+06", "1e+06 to 1000001", "1000001 to 1000001.5", "1000001.5 or more"],
        ),
    ],
)
def test_each_id_has_a_name_of_its_own(feature: dict[str, object], names: list[str]) -> None:
    spec: FeatureSpec = TypeAdapter(FeatureSpec).validate_python(feature)
    found = [slice_name(spec, value) for value in range(1 + len(names))]
    assert found == ["missing", *names]
    assert len({*found, "all others"}) == len(found) + 1
