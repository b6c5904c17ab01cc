"""Each role hangs and lives, and storage never answers: ended with its reason, rows stay exact."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from support.hangs import DEADLINE_SECONDS, ROLES, assert_ended, hanging_case, stop
from support.kill_cases import KillCase
from support.kills import log_of, signal_role
from support.stuck_code import stick

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]


@pytest.fixture
def case(tmp_path: Path) -> KillCase:
    return hanging_case(tmp_path, 60_000)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_stopped_in_the_middle_of_a_window(case: KillCase, role: str) -> None:
    summary = case.run(lambda: stop(case, role))
    assert_ended(case, summary, role, why="no sign of life for ")
    window = summary["windows"][0]
    assert (window["resumed_from_step"] > 0) == (role == "trainer")


@pytest.mark.guarantee("a role is slow or waits for others", "nothing; it is left alone")
def test_a_role_that_is_slow_and_wakes_in_time_is_left_alone(case: KillCase) -> None:
    """More than half of the deadline, twice each."""

    def sleep() -> None:
        for role in ROLES:
            process = signal_role(case.project, role, signal.SIGSTOP)
            time.sleep(DEADLINE_SECONDS * 0.6)
            os.kill(process, signal.SIGCONT)

    summary = case.run(sleep, sleep)
    assert set(summary["restarts"].values()) == {0}, summary["notes"]
    assert summary["notes"] == []
    case.assert_exact(summary)


@pytest.mark.guarantee(
    "storage never answers a read",
    "nothing; red after `restarts_max`, naming the task; read again: frames in flight",
)
def test_storage_that_never_answers(case: KillCase, tmp_path: Path) -> None:
    """A segment is opened, and the call stays in the kernel."""
    stick(case.project, tmp_path / "stuck", ("data_executor", "pyarrow.ipc:open_file", 2))
    summary = case.run()
    assert_ended(case, summary, "data", why="no progress for ")
    assert re.search(r"hung: no progress for \d+ s \(reading clicks/", str(summary))
    assert "log/read.py" in log_of(case.project, "data-0"), "the stacks name the place"
