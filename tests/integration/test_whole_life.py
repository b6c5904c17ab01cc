"""A process dies at thirty points of three windows' whole life: the next start goes on, exactly."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.whole_life.attempts import attempts

pytestmark = pytest.mark.timeout(600)
POINTS = 30
# Of the three windows, two are trained twice.
TRAININGS = 5
TRANSACTIONS_MAX = 15


def test_killed_at_thirty_points(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(tmp_path, "--seed", str(seed), "--count", str(POINTS))
    assert len(tried.faults) == POINTS
    assert tried.wrong == {}, f"seed {seed}"
    assert tried.transactions <= TRANSACTIONS_MAX * TRAININGS
