"""The sequences of tests/property/test_line_sequences.py, until all has happened many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from support.line_sequences.command import require_green
from support.line_sequences.counts import REFUSALS
from support.line_sequences.declared import CHANGES
from support.line_sequences.machine import WEIGHTS

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(2400)]
# It ends once each was met so often, or after 20 minutes; on busy processors rare ones are fewer.
TIMES, TIMES_LEAST = 20, 2


def test_each_operation_and_each_refusal_was_met_many_times() -> None:
    """Again with a seed that it prints: `python -m support.line_sequences --seed S --shrink`."""
    seen = require_green(
        seconds=1200,
        timeout_seconds=900,  # of 25 sequences: beside other tests they take up to seven minutes
        processes=2,
        enough=lambda counts: not _seldom(counts, TIMES),
    )
    assert _seldom(seen, TIMES_LEAST) == {}


def _seldom(seen: Mapping[str, Counter[str]], times: int) -> dict[str, int]:
    keys = {".".join(place[1:]) for place in CHANGES}
    wanted = {"operations": WEIGHTS, "refusals": REFUSALS, "changes": keys, "undone": keys}
    return {
        f"{what}: {name}": seen[what][name]
        for what, names in wanted.items()
        for name in names
        if seen[what][name] < times
    }
