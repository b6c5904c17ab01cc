"""What a job's processes expose on the machine: open files, sockets, tokens, interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import psutil
from support.kills import job_processes, pid_of, running, wait_for_rows
from support.planted import CERTIFICATES, PLANTED, STORAGE_KEY, planted_in
from support.projects import ads_pipeline, ads_project

WINDOW = "2026-03-01"
ARGUMENTS = ("run", "ads", "--from", WINDOW, "--to", WINDOW)


def test_tokens_are_nowhere_and_keys_are_where_they_are_needed(tmp_path: Path) -> None:
    """The trainer opens no data, and no process has a network connection."""
    project = ads_project(tmp_path, rows=200_000)
    project.environment = PLANTED
    with running(project, *ARGUMENTS) as run:
        wait_for_rows(project, WINDOW, 50_000, run)
        trainer = psutil.Process(pid_of(project, "trainer-0"))
        named = [psutil.Process(pid_of(project, name)) for name in ("data-0", "driver-0")]
        processes = job_processes(project)
        (job_dir,) = (project.home / "jobs").iterdir()
        files = [Path(file.path) for file in trainer.open_files()]
        peers = {each.pid: each.net_connections("inet") for each in processes}
        sockets = trainer.net_connections("unix")
        inherited = planted_in([*named, trainer])
        paths = sorted((job_dir / "sockets").glob("*.token"))
        tokens = [path.read_text() for path in paths]
        modes = {path.stat().st_mode & 0o777 for path in [*paths, job_dir / "sockets"]}
        texts = [" ".join(each.cmdline()) for each in processes]
        texts += [json.dumps(each.environ()) for each in processes]
        output = run.communicate(timeout=60)[0]
    assert [path for path in files if path.is_relative_to(project.root / "data")] == []
    assert len(peers) >= 4
    assert not any(peers.values()), "neither a port nor a broker"
    assert len(sockets) >= 2, "to the driver and to a data executor"
    keys = {CERTIFICATES, STORAGE_KEY}
    assert inherited == [keys, keys, {CERTIFICATES}]
    assert [path.name.split(".")[0] for path in paths] == ["data-0", "driver-0"]
    assert len(set(tokens)) == 2
    assert all(len(token) == 43 for token in tokens), "32 bytes"
    assert modes == {0o600, 0o700}
    assert len(texts) >= 8
    texts += [output, *(path.read_text() for path in (job_dir / "logs").iterdir())]
    assert [text for text in texts if any(each in text for each in tokens)] == []
    assert list((job_dir / "sockets").iterdir()) == []


def bare_interpreter(folder: Path) -> str:
    """A virtual environment that sees this one's packages, but not TensorFlow."""
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


def test_an_environment_without_tensorflow_says_so_or_submits_to_one_with_it(
    tmp_path: Path,
) -> None:
    bare = bare_interpreter(tmp_path / "bare")
    project = ads_project(tmp_path, rows=3_000, pipeline=ads_pipeline("towers"))
    project.command = lambda *words: [bare, "-m", "forebay", *words]  # type: ignore[method-assign]
    done = project.forebay(*ARGUMENTS, check=False)
    assert (done.returncode, "forebay[train]" in done.stderr) == (1, True), done.stderr
    project.pipeline["job"]["roles"] = {"trainer": {"runtime": {"python": sys.executable}}}
    project.write_pipeline()
    summary = project.run(WINDOW, WINDOW, timeout_seconds=180)
    assert summary["rows_agree"]
    assert set(summary["windows"][0]["metrics"]) == {"mixture", "mixture/memory"}
