"""A process dies, or power is lost, at thirty points of three windows' whole life: the next start
goes on, exactly. In each of them a row that names what is not on the disk ends the process."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.whole_life.attempts import attempts

pytestmark = pytest.mark.timeout(600)
POINTS = 30
CUTS = 15
# Of the three windows, two are trained twice.
TRAININGS = 5
TRANSACTIONS_MAX = 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project for both: to record its frames takes longer than to live."""
    return tmp_path_factory.mktemp("lives")


def test_killed_at_thirty_points(folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(folder, "--seed", str(seed), "--count", str(POINTS))
    assert len(tried.faults) == POINTS
    assert tried.wrong == {}, f"seed {seed}"
    assert tried.transactions <= TRANSACTIONS_MAX * TRAININGS


def test_power_lost_at_fifteen_points(folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(folder, "--death", "cut", "--seed", str(seed), "--count", str(CUTS))
    assert len(tried.faults) == CUTS
    assert tried.wrong == {}, f"seed {seed}"
