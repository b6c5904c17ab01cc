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


@pytest.mark.guarantee(
    "any process that plans, trains, judges, publishes or forgets dies before any statement or "
    "durable write",
    "nothing; nothing is ever visible in part, and the same command continues; read again: as "
    "for the trainer",
)
def test_killed_at_thirty_points(folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(folder, "--seed", str(seed), "--count", str(POINTS))
    assert len(tried.faults) == POINTS
    assert tried.wrong == {}, f"seed {seed}"
    assert tried.transactions <= TRANSACTIONS_MAX * TRAININGS


@pytest.mark.guarantee(
    "the power fails at any write of a window's life",
    "nothing; no row names bytes that were not synced, and the same command continues from the "
    "newest seal; read again: as for the trainer; `reread_rows` may leave out what was read "
    "since that seal",
)
def test_power_lost_at_fifteen_points(folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    tried = attempts(folder, "--death", "cut", "--seed", str(seed), "--count", str(CUTS))
    assert len(tried.faults) == CUTS
    assert tried.wrong == {}, f"seed {seed}"
