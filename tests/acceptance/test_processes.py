"""What a job's processes expose on the machine: open files, sockets, tokens, interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.kills import job_processes, pid_of, running, wait_for_rows
from support.planted import CERTIFICATES, PLANTED, STORAGE_KEY, planted_in
from support.projects import ads_pipeline, ads_project

WINDOW = "2026-03-01"
ARGUMENTS = ("run", "ads", "--from", WINDOW, "--to", WINDOW)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A job in its middle, and what it left."""
    project = ads_project(tmp_path_factory.mktemp("seen"), rows=200_000)
    project.environment = PLANTED
    with running(project, *ARGUMENTS) as run:
        wait_for_rows(project, WINDOW, 50_000, run)
        trainer = psutil.Process(pid_of(project, "trainer-0"))
        named = [psutil.Process(pid_of(project, name)) for name in ("data-0", "driver-0")]
        processes = job_processes(project)
        job_dir = next((project.home / "jobs").iterdir())
        tokens = sorted((job_dir / "sockets").glob("*.token"))
        found: dict[str, Any] = {
            "data": project.root / "data",
            "files": [Path(file.path) for file in trainer.open_files()],
            "peers": {each.pid: each.net_connections("inet") for each in processes},
            "sockets": trainer.net_connections("unix"),
            "inherited": planted_in([*named, trainer]),
            "tokens": {path.name.split(".")[0]: path.read_text() for path in tokens},
            "modes": {path.stat().st_mode & 0o777 for path in [*tokens, job_dir / "sockets"]},
            "commands": [" ".join(each.cmdline()) for each in processes],
            "environments": [json.dumps(each.environ()) for each in processes],
        }
        output = run.communicate(timeout=60)[0]
    logs = [path.read_text() for path in (job_dir / "logs").iterdir()]
    return found | {"written": [output, *logs], "left": list((job_dir / "sockets").iterdir())}


def test_the_trainer_opens_no_data_and_no_process_has_a_network_connection(
    seen: dict[str, Any],
) -> None:
    assert [path for path in seen["files"] if path.is_relative_to(seen["data"])] == []
    assert len(seen["peers"]) >= 4
    assert not any(seen["peers"].values()), "neither a port nor a broker"
    assert len(seen["sockets"]) >= 2, "to the driver and to a data executor"


def test_tokens_are_nowhere_and_keys_are_where_they_are_needed(seen: dict[str, Any]) -> None:
    keys = {CERTIFICATES, STORAGE_KEY}
    assert seen["inherited"] == [keys, keys, {CERTIFICATES}]
    assert list(seen["tokens"]) == ["data-0", "driver-0"]
    tokens = set(seen["tokens"].values())
    assert len(tokens) == 2
    assert all(len(token) == 43 for token in tokens), "32 bytes"
    assert seen["modes"] == {0o600, 0o700}
    assert len(seen["commands"]) == len(seen["environments"]) >= 4
    texts = [*seen["commands"], *seen["environments"], *seen["written"]]
    assert [text for text in texts if any(each in text for each in tokens)] == []
    assert seen["left"] == []


@pytest.fixture(scope="module")
def bare_interpreter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A virtual environment that sees this one's packages, but not TensorFlow."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    here = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for entry in here.iterdir():
        if not entry.name.startswith(("tensorflow", "keras", "__pycache__")):
            (site / entry.name).symlink_to(entry)
    python = folder / "bin" / "python"
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('tensorflow') is not None)"
    subprocess.run([python, "-c", probe], check=True)
    return str(python)


def test_an_environment_without_tensorflow_submits_and_one_with_it_trains(
    tmp_path: Path, bare_interpreter: str
) -> None:
    pipeline = ads_pipeline("towers", roles={"trainer": {"runtime": {"python": sys.executable}}})
    project = ads_project(tmp_path, rows=3_000, pipeline=pipeline)
    project.command = lambda *words: [bare_interpreter, "-m", "forebay", *words]  # type: ignore[method-assign]
    summary = project.run(WINDOW, WINDOW, timeout_seconds=180)
    assert summary["rows_agree"]
    assert set(summary["windows"][0]["metrics"]) == {"mixture", "mixture/memory"}


def test_without_tensorflow_the_error_names_the_package(
    tmp_path: Path, bare_interpreter: str
) -> None:
    project = ads_project(tmp_path, rows=200, pipeline=ads_pipeline("towers"))
    project.command = lambda *words: [bare_interpreter, "-m", "forebay", *words]  # type: ignore[method-assign]
    done = project.forebay(*ARGUMENTS, check=False)
    assert done.returncode == 1
    assert "forebay[train]" in done.stderr
