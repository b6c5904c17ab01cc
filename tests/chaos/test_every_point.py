"""A process dies before each statement and each durable write of three windows' whole life."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.whole_life.attempts import attempts

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(7200)]


def test_killed_at_every_point(tmp_path: Path) -> None:
    tried = attempts(tmp_path, seconds=7000)
    assert len(tried.faults) > 1_000
    assert tried.wrong == {}
