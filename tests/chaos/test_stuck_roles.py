"""Code that never returns, at chosen places of real processes; and stops that are no hang."""

from __future__ import annotations

import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from support.hangs import DEADLINE_SECONDS, ROLES, assert_ended, hanging_case
from support.kill_cases import KillCase
from support.kills import log_of, no_process_left, signal_role, status
from support.stuck_code import stick

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]
SEAL = ("driver", "forebay.executors.driver.window:ServedWindow.seal", 2)
SAVE = ("trainer", "forebay.executors.window_files.checkpoints:folder_checksums", 2)
READ = ("data_executor", "forebay.executors.data_executor.task_runner:served_chunk", 3)
FRAME = ("data_executor", "forebay.executors.data_executor.epoch:ServingEpoch.next", 20)
START = ("data_executor", "forebay.executors.role:start_role", 1)
END = ("trainer", "forebay.executors.trainer.train:end_at_once", 1)


@pytest.fixture
def case(tmp_path: Path) -> KillCase:
    return hanging_case(tmp_path, 20_000)


@pytest.mark.guarantee(
    "a call, a read or a checkpoint never returns", "nothing; read again: as if the role had died"
)
@pytest.mark.parametrize(
    ("place", "role", "doing"),
    [
        pytest.param(SEAL, "driver", "answering calls", id="a call that is never answered"),
        pytest.param(SAVE, "trainer", "trainer, seal", id="a checkpoint that is never written"),
        pytest.param(READ, "data", "reading ", id="a chunk that is never decoded"),
    ],
)
def test_one_call_never_returns(
    case: KillCase, tmp_path: Path, place: tuple[str, str, int], role: str, doing: str
) -> None:
    stick(case.project, tmp_path / "stuck", place)
    summary = case.run()
    assert_ended(case, summary, role, why=f"({doing}")


def test_two_roles_at_once(case: KillCase, tmp_path: Path) -> None:
    stick(case.project, tmp_path / "stuck", SAVE, READ)
    summary = case.run()
    assert_ended(case, summary, "data", "trainer", why="no progress for ")


def test_frames_that_stop_coming(case: KillCase, tmp_path: Path) -> None:
    """The data executor waits for whom it serves: the trainer's patience ends it."""
    stick(case.project, tmp_path / "stuck", FRAME)
    summary = case.run(end_seconds=400)
    assert summary["restarts"] == dict.fromkeys(("supervisor", *ROLES), 0) | {"trainer": 1}
    assert "no rows came for 12" in log_of(case.project, "trainer-0")
    case.assert_exact(summary)


def test_before_the_first_sign_of_life(case: KillCase, tmp_path: Path) -> None:
    stick(case.project, tmp_path / "stuck", START)
    summary = case.run(end_seconds=400)
    assert summary["restarts"] == dict.fromkeys(("supervisor", *ROLES), 0) | {"data": 1}
    assert re.search(r"data-0 hung: no sign of life for \d+ s after its start", str(summary))
    case.assert_exact(summary)


def test_after_the_last_window(case: KillCase, tmp_path: Path) -> None:
    """The work is done and durable: nothing is started again for it."""
    stick(case.project, tmp_path / "stuck", END)
    summary = case.run()
    assert set(summary["restarts"].values()) == {0}, summary["notes"]
    case.assert_exact(summary)


@pytest.mark.guarantee(
    "a role hangs every time it is restarted",
    "nothing; red after `restarts_max`, with the reason; read again: as if it had died",
)
def test_a_trainer_that_hangs_in_each_of_its_lives(case: KillCase, tmp_path: Path) -> None:
    stick(case.project, tmp_path / "stuck", SAVE, always=True)
    case.project.pipeline["job"]["failover"]["restarts_max"] = 2
    case.project.write_pipeline()
    done = case.project.forebay(*case.arguments, check=False, timeout_seconds=300)
    assert done.returncode == 4, done.stdout
    told = done.stdout + done.stderr
    assert re.search(r"trainer-0 hung: no progress for \d+ s \(trainer, seal\)", told)
    assert "it has ended 3 times" in told
    assert no_process_left(case.project)


@pytest.mark.guarantee(
    "the supervisor is stopped, or the whole job is frozen, and later resumes",
    "nothing; no process is ended",
)
@pytest.mark.parametrize("roles", [("supervisor",), ("supervisor", *ROLES)])
def test_a_stop_of_the_supervisor_too_is_no_hang_of_the_others(
    case: KillCase, roles: tuple[str, ...]
) -> None:
    """A container that is frozen, for longer than anybody waits for another."""
    failover = case.project.pipeline["job"]["failover"]
    failover["heartbeat_timeout"] = "1s"
    case.project.write_pipeline()

    def sleep() -> None:
        pids = [signal_role(case.project, role, signal.SIGSTOP) for role in roles]
        try:
            time.sleep(4 * DEADLINE_SECONDS)
        finally:
            for pid in pids:
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(pid).resume()

    summary = case.run(sleep)
    assert set(summary["restarts"].values()) == {0}, summary["notes"]
    assert status(case.project)["hung"] == []
    case.assert_exact(summary)
