"""The sequences of tests/property/test_line_sequences.py, until all has happened many times."""

from __future__ import annotations

import pytest
from support.line_sequences.command import require_green
from support.line_sequences.counts import REFUSALS
from support.line_sequences.machine import WEIGHTS

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]
TIMES = 20


def test_each_operation_and_each_refusal_was_met_many_times() -> None:
    """Again with a seed that it prints: `python -m support.line_sequences --seed S --shrink`."""
    seen = require_green("--seconds", "1500", timeout_seconds=1750, processes=2)
    done, refused, changed = (seen[each] for each in ("operations", "refusals", "changes"))
    assert {name for name in WEIGHTS if done[name] < TIMES} == set()
    assert {name for name in REFUSALS if refused[name] < TIMES} == set()
    assert min(changed.values()) >= TIMES, changed
