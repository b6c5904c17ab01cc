"""Rules of single features."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from forebay.config.specs.features import BucketiseFeature


@pytest.mark.parametrize("boundaries", [[2, 1], [1, 1], [1, 3, 2]])
def test_boundaries_ascend(boundaries: list[float]) -> None:
    with pytest.raises(ValidationError, match="boundaries must ascend"):
        BucketiseFeature(encode="bucketise", boundaries=boundaries)
    assert BucketiseFeature(encode="bucketise", boundaries=[1, 2]).boundaries == [1, 2]
