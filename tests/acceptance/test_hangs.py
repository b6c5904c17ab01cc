"""Processes that are alive but hang are ended with their stacks in the log, and rows stay exact.

Each role alone, and storage that never answers, is tests/chaos.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hangs import ROLES, assert_ended, stop, with_deadlines
from support.kill_cases import KillCase
from support.projects import ads_pipeline, ads_project

ROWS = 20_000


@pytest.mark.guarantee(
    "a driver, data executor or trainer hangs", "nothing; read again: as if it had died"
)
@pytest.mark.chaos
def test_all_roles_are_stopped_in_the_middle_of_a_window(tmp_path: Path) -> None:
    pipeline = ads_pipeline(**with_deadlines(checkpoint={"every_steps": 10}))
    pipeline["train"]["minibatch_rows"] = 64  # slow enough not to end when all are woken
    case = KillCase(ads_project(tmp_path, rows=ROWS, pipeline=pipeline), ROWS, 10)
    summary = case.run(lambda: stop(case, *ROLES))
    assert_ended(case, summary, *ROLES, why="no sign of life for ")
    assert summary["windows"][0]["resumed_from_step"] > 0
