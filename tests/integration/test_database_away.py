"""A real job whose PostgreSQL server goes away: training continues, its link waits, no loss."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.hangs import DEADLINE_SECONDS, with_deadlines
from support.kill_cases import assert_exact
from support.kills import log_of, no_process_left, running, summary_of
from support.postgres_server import PostgresServer
from support.projects import FIRST_DAY, Project, ads_pipeline, ads_project
from support.toy_roles.jobs import eventually

from forebay.executors.model_line.link import Link
from forebay.home.database.open import close_databases

KEY = f"{FIRST_DAY:%Y-%m-%d}"
ARGUMENTS = ("run", "ads", "--from", KEY, "--to", KEY)


@pytest.fixture
def project(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> Project:
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    pipeline = ads_pipeline(checkpoint={"every_steps": 20})
    return ads_project(tmp_path, rows=200_000, pipeline=pipeline)


def sealed_step(project: Project) -> int:
    """Of the newest seal on the disk of the host that trains; 0 before the first."""
    found = project.home.glob("training/ads/main/*/g1/checkpoints/[0-9]*/seal.json")
    return max((int(path.parent.name.partition("-")[0]) for path in found), default=0)


def trained(project: Project) -> Link:
    link = assert_exact(project)
    close_databases()
    return link


@contextmanager
def away(server: PostgresServer) -> Iterator[None]:
    server.stop(signal.SIGKILL)
    try:
        yield
    finally:
        server.start()


@pytest.mark.guarantee(
    "the database is away for less than ten minutes",
    "nothing; training continues, and its link waits",
)
@pytest.mark.parametrize(
    "seconds", [8.0, pytest.param(65.0, marks=[pytest.mark.chaos, pytest.mark.timeout(300)])]
)
def test_away_while_a_window_trains(
    project: Project, postgres_server: PostgresServer, seconds: float
) -> None:
    with running(project, *ARGUMENTS) as run:
        eventually(lambda: sealed_step(project), 60)
        before = sealed_step(project)
        with away(postgres_server):
            gone_at = time.monotonic()
            eventually(lambda: "waiting for up to 600 s" in log_of(project, "trainer-0"), 60)
            assert sealed_step(project) > before, "it went on and sealed on its own disk"
            assert run.poll() is None
            time.sleep(max(0.0, gone_at + seconds - time.monotonic()))
        told, _ = run.communicate(timeout=90)
        assert run.returncode == 0, told
    assert "answers again" in log_of(project, "trainer-0")
    assert log_of(project, "trainer-0").count("--- trainer-0 starts") == 1
    assert trained(project).resumed_from_step == 0


@pytest.mark.guarantee(
    "the database is away for longer",
    "red; the same command continues from the newest seal; read again: at most one checkpoint "
    "interval",
)
@pytest.mark.chaos
@pytest.mark.timeout(1200)
def test_away_for_longer_than_a_job_waits(
    project: Project, postgres_server: PostgresServer
) -> None:
    with running(project, *ARGUMENTS) as run:
        eventually(lambda: sealed_step(project), 60)
        with away(postgres_server):
            told, _ = run.communicate(timeout=800)
            assert run.returncode == 4, told
            assert "cannot be reached" in told or "could not be stored" in told
            assert no_process_left(project, 60)
    project.forebay(*ARGUMENTS)
    assert trained(project).resumed_from_step > 0, "from its own disk"


@pytest.mark.guarantee(
    "a job waits for a database that is away or does not answer", "nothing; no process is ended"
)
@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["gone", "silent"])
def test_to_wait_for_it_is_no_hang(
    project: Project, postgres_server: PostgresServer, how: str
) -> None:
    """For many times as long as a role may make no progress, at each place that asks it."""
    project.pipeline["job"] |= with_deadlines()
    project.write_pipeline()
    with running(project, *ARGUMENTS, "--summary", str(project.home / "summary.json")) as run:
        eventually(lambda: sealed_step(project), 60)
        with away(postgres_server) if how == "gone" else postgres_server.suspended():
            time.sleep(8 * DEADLINE_SECONDS)
            assert run.poll() is None
        told, _ = run.communicate(timeout=150)
        assert run.returncode == 0, told
    summary = summary_of(project.home / "summary.json")
    assert (set(summary["restarts"].values()), summary["notes"]) == ({0}, [])
    assert trained(project).resumed_from_step == 0
