"""The folder of a job: private, prepared for a supervisor, and whether its lock is held."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.jobs import request

from forebay.executors.job.folder import JobFolder
from forebay.executors.job.host import host_of
from forebay.executors.roles.table import SUPERVISOR
from forebay.home.paths import Home
from forebay.system.files.locks import FileLock


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    found = JobFolder(tmp_path / "jobs" / "job-1")
    found.create()
    return found


def prepare(folder: JobFolder, *, continues: bool = False) -> None:
    folder.prepare(request(folder.home, folder.job_id, {}), continues=continues)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_holds_secrets_is_closed_to_others(folder: JobFolder) -> None:
    prepare(folder)
    assert mode(folder.path / "job.json") == 0o600
    folder.path.chmod(0o755)
    folder.create()
    assert (mode(folder.path), folder.job_id) == (0o700, "job-1")
    assert folder.home == Home(folder.path.parent.parent)


@pytest.mark.parametrize("continues", [True, False])
def test_a_preparation_leaves_nothing_of_processes_that_are_gone(
    folder: JobFolder, continues: bool
) -> None:
    prepare(folder)
    names = ("endpoints/data-0", "sockets/data-0", "journal/driver.jsonl")
    for left in (folder.path / name for name in names):
        left.parent.mkdir(exist_ok=True)
        left.write_text("of a process that is gone")
    prepare(folder, continues=continues)
    assert not any((folder.path / name).exists() for name in names)
    assert folder.request().job_id == "job-1"


@pytest.mark.parametrize("continues", [True, False])
def test_progress_stays_where_the_run_continues(folder: JobFolder, continues: bool) -> None:
    (folder.path / "progress.json").write_text("{}")
    prepare(folder, continues=continues)
    assert (folder.path / "progress.json").exists() is continues


def test_a_poke_is_taken_once(folder: JobFolder) -> None:
    assert not folder.take_poke()
    folder.poke()
    folder.poke()
    assert folder.take_poke()
    assert not folder.take_poke()
    JobFolder(folder.path.with_name("elsewhere")).poke()  # it runs on another host
    assert not folder.path.with_name("elsewhere").exists()


def test_a_submitter_that_holds_the_lock_is_no_supervisor(folder: JobFolder) -> None:
    assert not folder.is_supervised()
    lock = FileLock(folder.supervisor_lock)
    assert lock.acquire(1.0)
    assert not folder.is_supervised()
    lock.write(SUPERVISOR)
    assert folder.is_supervised()
    lock.release()
    assert not folder.is_supervised()
    with host_of(folder.home).hold(folder.job_id, 1.0) as held:
        assert held is not None
        assert not folder.is_supervised(), "whatever the last holder wrote"


def test_temporary_files_go_with_their_process(folder: JobFolder) -> None:
    first = folder.process("trainer", 0).new_temporary()
    (first / "__autograph_generated_file1.py").touch()
    other = folder.process("data", 1).new_temporary()
    assert (folder.process("trainer", 0).new_temporary(), list(first.iterdir())) == (first, [])
    assert other.is_dir()
    folder.close()
    folder.close()
    assert not first.exists()
    assert not other.exists()


def test_what_operators_import_is_light() -> None:
    code = (
        "import sys, forebay.executors.job.folder, forebay.executors.job.submit\n"
        "heavy = {'numpy', 'pyarrow', 'grpc', 'pandas', 'tensorflow'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
