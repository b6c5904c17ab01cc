"""What a job's processes expose on the machine: open files, sockets, tokens, interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import psutil
import pytest
from support.kills import job_processes, pid_of, running, wait_for_rows
from support.planted import CERTIFICATES, PLANTED, STORAGE_KEY, planted_in
from support.projects import Project, ads_pipeline, ads_project

WINDOW = "2026-03-01"
ARGUMENTS = ("run", "ads", "--from", WINDOW, "--to", WINDOW)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return ads_project(tmp_path, rows=200_000)


def test_the_trainer_opens_no_data_and_no_process_has_a_network_connection(
    project: Project,
) -> None:
    with running(project, *ARGUMENTS) as run:
        wait_for_rows(project, WINDOW, 50_000, run)
        trainer = psutil.Process(pid_of(project, "trainer-0"))
        files = [Path(file.path) for file in trainer.open_files()]
        peers = {process.pid: process.net_connections("inet") for process in job_processes(project)}
        sockets = trainer.net_connections("unix")
        run.communicate(timeout=60)
    data = project.root / "data"
    assert [path for path in files if path.is_relative_to(data)] == []
    assert len(peers) >= 4
    assert not any(peers.values()), "neither a port nor a broker"
    assert len(sockets) >= 2, "to the driver and to a data executor"


def test_tokens_are_nowhere_and_keys_are_where_they_are_needed(project: Project) -> None:
    project.environment = PLANTED
    with running(project, *ARGUMENTS) as run:
        wait_for_rows(project, WINDOW, 50_000, run)
        inherited = planted_in(
            psutil.Process(pid_of(project, name)) for name in ("data-0", "driver-0", "trainer-0")
        )
        job_dir = next((project.home / "jobs").iterdir())
        files = sorted((job_dir / "sockets").glob("*.token"))
        tokens = {path.read_text() for path in files}
        modes = {path.stat().st_mode & 0o777 for path in [*files, job_dir / "sockets"]}
        seen = [" ".join(process.cmdline()) for process in job_processes(project)]
        seen += [json.dumps(process.environ()) for process in job_processes(project)]
        output = run.communicate(timeout=60)[0]
    assert inherited == [{CERTIFICATES, STORAGE_KEY}, {CERTIFICATES, STORAGE_KEY}, {CERTIFICATES}]
    assert [path.name.split(".")[0] for path in files] == ["data-0", "driver-0"]
    assert len(tokens) == 2
    assert all(len(token) == 43 for token in tokens), "32 bytes"
    assert modes == {0o600, 0o700}
    assert len(seen) >= 8
    logs = [path.read_text() for path in (job_dir / "logs").iterdir()]
    assert [text for text in [*seen, output, *logs] if any(each in text for each in tokens)] == []
    assert list((job_dir / "sockets").iterdir()) == []


def bare_interpreter(folder: Path, without: str) -> str:
    """A virtual environment that sees this one's packages, but not the one named."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    here = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for entry in here.iterdir():
        if not entry.name.startswith(("tensorflow", "keras", "__pycache__")):
            (site / entry.name).symlink_to(entry)
    python = folder / "bin" / "python"
    probe = f"import importlib.util as u, sys; sys.exit(u.find_spec('{without}') is not None)"
    subprocess.run([python, "-c", probe], check=True)
    return str(python)


def test_an_environment_without_tensorflow_submits_and_one_with_it_trains(tmp_path: Path) -> None:
    pipeline = ads_pipeline("towers", roles={"trainer": {"runtime": {"python": sys.executable}}})
    project = ads_project(tmp_path, rows=3_000, pipeline=pipeline)
    python = bare_interpreter(tmp_path / "bare", "tensorflow")
    project.command = lambda *arguments: [python, "-m", "forebay", *arguments]  # type: ignore[method-assign]
    summary = project.run(WINDOW, WINDOW, timeout_seconds=180)
    assert summary["rows_agree"]
    assert set(summary["windows"][0]["metrics"]) == {"mixture", "mixture/memory"}


def test_without_tensorflow_the_error_names_the_package(tmp_path: Path) -> None:
    project = ads_project(tmp_path, rows=200, pipeline=ads_pipeline("towers"))
    python = bare_interpreter(tmp_path / "bare", "tensorflow")
    project.command = lambda *arguments: [python, "-m", "forebay", *arguments]  # type: ignore[method-assign]
    done = project.forebay(*ARGUMENTS, check=False)
    assert done.returncode == 4
    assert "forebay[train]" in done.stderr
