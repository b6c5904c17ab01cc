"""SIGKILL of every role while windows of 300,000 rows train: the model's row sums stay exact."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from support import independent
from support.kills import (
    kill_role,
    kill_tree,
    no_process_left,
    pid_of,
    progress_of,
    running,
    summary_of,
    wait_for_rows,
)
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, ads_project

ROWS = 300_000
WINDOW = "2026-03-01"
INTERVAL_ROWS = 50 * 1024
CREDIT_ROWS = 4 * 1024


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("kills"), days=1, rows=ROWS)


@pytest.fixture
def project(data: Project, tmp_path: Path) -> Project:
    """The same data with a home of its own."""
    return Project(data.root, ads_pipeline(), home_folder=tmp_path / "home")


def expected(project: Project) -> dict[str, independent.Sums]:
    first_ms = int(FIRST_DAY.timestamp() * 1000)
    return {
        "history": independent.parquet_sums(project.files, files=_day_files()),
        "clicks": independent.log_sums(
            project.log, first_ms, first_ms + int(DAY.total_seconds() * 1000)
        ),
    }


def _day_files() -> str:
    return f"date={FIRST_DAY - timedelta(days=1):%Y-%m-%d}/*.parquet"


def run_with(project: Project, summary: Path, act: Callable[[], None]) -> dict[str, object]:
    """Start a run, act between 30% and 70% of the rows, wait for its end."""
    arguments = ("run", "ads", "--from", WINDOW, "--to", WINDOW, "--summary", str(summary))
    with running(project, *arguments) as run:
        share = random.uniform(0.3, 0.7)
        wait_for_rows(project, WINDOW, int(share * 2 * ROWS), run)
        act()
        output, _ = run.communicate(timeout=120)
        assert run.returncode == 0, output
    return summary_of(summary)


def assert_exact(project: Project, summary: dict[str, object]) -> None:
    assert summary["seen"] == expected(project)
    assert summary["rows_agree"] is True
    assert no_process_left(project)


def test_trainer(project: Project, tmp_path: Path) -> None:
    summary = run_with(project, tmp_path / "s.json", lambda: kill_role(project, "trainer"))
    window = summary["windows"][0]
    assert window["resumed_from_step"] > 0
    assert 0 <= window["reread_rows"] <= INTERVAL_ROWS
    assert summary["restarts"]["trainer"] == 1
    assert_exact(project, summary)


@pytest.mark.parametrize("role", ["data", "driver"])
def test_the_trainer_outlives_the_data_side(project: Project, tmp_path: Path, role: str) -> None:
    pids = {}

    def kill() -> None:
        pids["before"] = pid_of(project, "trainer-0")
        kill_role(project, role)

    summary = run_with(project, tmp_path / "s.json", kill)
    window = summary["windows"][0]
    assert summary["restarts"]["trainer"] == 0
    assert progress_of(project)["pid"] == pids["before"]
    assert window["resumed_from_step"] == 0
    assert 0 <= window["reread_rows"] <= CREDIT_ROWS
    assert summary["restarts"][role] == 1
    assert_exact(project, summary)


def test_supervisor(project: Project, tmp_path: Path) -> None:
    summary = run_with(project, tmp_path / "s.json", lambda: kill_role(project, "supervisor"))
    assert summary["restarts"]["supervisor"] == 1
    assert_exact(project, summary)


def test_everything_and_the_same_command_again(project: Project, tmp_path: Path) -> None:
    summary = tmp_path / "s.json"
    arguments = ("run", "ads", "--from", WINDOW, "--to", WINDOW, "--summary", str(summary))
    with running(project, *arguments) as run:
        wait_for_rows(project, WINDOW, ROWS, run)
        kill_tree(project, run)
    assert not summary.exists()
    project.forebay(*arguments)
    facts = summary_of(summary)
    assert facts["windows"][0]["resumed_from_step"] > 0
    assert_exact(project, facts)
