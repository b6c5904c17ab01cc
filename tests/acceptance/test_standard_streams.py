"""Standard streams that are closed, unread or full: the command works, its exit code is its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.projects import Project, ads_project

FOREBAY = f"{sys.executable} -m forebay"
# `schema` prints more than is written at once; the help is written by typer.
COMMANDS = ("check", "schema", "--help")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("ads"), rows=500)


def shell(project: Project, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=project.root,
        env=project.env(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-", ">&- 2>/dev/full"])
def test_a_closed_stream(project: Project, closed: str) -> None:
    done = shell(project, f"{FOREBAY} check {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) is (closed in {"2>&-", "<&-"})


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_an_error_keeps_its_exit_code(project: Project, closed: str) -> None:
    done = shell(project, f"{FOREBAY} plan nothing --from 2026-03-01 --to 2026-03-01 {closed}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert ("no pipeline 'nothing'" in done.stderr) is (closed == ">&-")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_is_gone(project: Project, command: str) -> None:
    done = shell(project, f"{FOREBAY} {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout.strip(), done.stderr) == ("0", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_below_standard_output_is_told(project: Project, command: str) -> None:
    done = shell(project, f"{FOREBAY} {command} >/dev/full")
    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        "error: standard output is not complete: [Errno 28] No space left on device"
    ]


def test_a_run_trains_though_nobody_reads_it(project: Project) -> None:
    window = "run ads --from 2026-03-01 --to 2026-03-01"
    assert shell(project, f"{FOREBAY} {window} <&- >&- 2>&-").returncode == 0
    assert project.run("2026-03-01", "2026-03-01")["trained_windows"] == []
