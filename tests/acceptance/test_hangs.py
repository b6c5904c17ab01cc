"""Processes that are alive but hang are ended with their stacks in the log, and rows stay exact.

Each role alone, and storage that never answers, is tests/chaos.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hangs import ROLES, assert_ended, hanging_case, stop


@pytest.mark.guarantee(
    "a driver, data executor or trainer hangs", "nothing; read again: as if it had died"
)
@pytest.mark.chaos
def test_all_roles_are_stopped_in_the_middle_of_a_window(tmp_path: Path) -> None:
    case = hanging_case(tmp_path, 20_000, 64)  # slow enough not to end when all are woken
    summary = case.run(lambda: stop(case, *ROLES))
    assert_ended(case, summary, *ROLES, why="no sign of life for ")
    assert summary["windows"][0]["resumed_from_step"] > 0
