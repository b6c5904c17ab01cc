"""A process dies before each statement and each durable write of three windows' whole life, and
power is lost before each write: all that was not synced is lost, or any part of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.whole_life.attempts import all_attempts

LIVES_SECONDS = 3 * 3600
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(LIVES_SECONDS + 600)]


def test_killed_at_every_point(tmp_path: Path) -> None:
    tried = all_attempts(tmp_path, seconds=LIVES_SECONDS)
    assert len(tried.faults) > 1_000
    assert tried.wrong == {}
    assert len(tried.beyond) <= 10


def test_power_lost_at_every_point(tmp_path: Path) -> None:
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        tried = all_attempts(folder, "--death", "cut", "--seed", str(seed), seconds=LIVES_SECONDS)
        assert len(tried.faults) > 500
        assert tried.wrong == {}, f"seed {seed}"
