"""A job whose database goes away: it continues, restarts what dies, ends; its state is late."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.postgres_server import PostgresServer
from support.toy_roles.jobs import ToyJobs, eventually

from forebay.executors.supervisor.reporter import BEAT_SECONDS


def test_a_life_is_three_transactions_and_the_heartbeats(jobs: ToyJobs, tmp_path: Path) -> None:
    jobs.plan(trainer_0=[f"wait {tmp_path / 'done'}"])
    handle = jobs.submit()
    jobs.serving(handle, "driver-0", "data-0")
    (tmp_path / "done").touch()
    status = handle.wait(20)
    assert status.state == "succeeded"
    assert status.started_at is not None
    assert status.ended_at is not None
    seconds = (status.ended_at - status.submitted_at).total_seconds()
    # Each of the supervisor's transactions counts as one beat; the third is the submission.
    assert 2 <= handle.look().row.beats <= 2 + seconds / BEAT_SECONDS


def test_a_job_goes_on_and_ends_while_its_database_is_away(
    jobs: ToyJobs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_database: Callable[[], str],
    postgres_server: PostgresServer,
) -> None:
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    jobs.plan(trainer_0=[f"wait {tmp_path / 'done'}"])
    handle = jobs.submit()
    jobs.serving(handle, "driver-0", "data-0")
    eventually(lambda: len(handle.status().pids) == 4)
    before = handle.status()
    postgres_server.stop(signal.SIGKILL)
    try:
        os.kill(before.pids["data-0"], signal.SIGKILL)
        eventually(lambda: len(jobs.starts("data-0")) == 2)
        (tmp_path / "done").touch()
        # All roles are gone, and the supervisor waits for the database alone.
        eventually(lambda: [one.pid for one in jobs.processes()] == [before.pids["supervisor"]])
    finally:
        postgres_server.start()
    status = handle.wait(60)
    assert (status.state, status.pids) == ("succeeded", {})
    assert status.restarts["data"] == 1
    assert jobs.processes() == []
