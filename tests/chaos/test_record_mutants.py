"""A hundred thousand mutated files of each kind: none touches another record's row."""

from __future__ import annotations

import pytest
from support.record_mutants import mutants

pytestmark = pytest.mark.chaos


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["json", "csv", "tfrecord"])
def test_no_mutated_record_touches_another(kind: str) -> None:
    mutants(kind, count=100_000, seed=11)
