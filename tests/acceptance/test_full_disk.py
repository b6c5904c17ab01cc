"""A full disk: red, named, no process left; with room again the same command continues, exact.

If this process may mount, the disk is a real file system without room. A limit on the size of
files works for every user and fails only the trainer's writes, so that others can report it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.kill_cases import WINDOW, expected
from support.kills import no_process_left, summary_of
from support.projects import Project, ads_pipeline, ads_project
from support.small_disk import fill, grow, limited, may_mount, tiny_file_system
from support.truth_rows import serves

from forebay.home.database.open import database_of
from forebay.home.database.reserve import RESERVE_BYTES, RESERVE_NAME
from forebay.home.paths import Home
from forebay.home.store.open import store_of

ROWS = 60_000
DISK_BYTES = (1_400 << 10) + RESERVE_BYTES  # the database and all rows' labels need more
FILE_BYTES = 150_000  # one segment of labels needs more
ARGUMENTS = ("run", "ads", "--from", WINDOW, "--to", WINDOW)


def refuse(project: Project, command: list[str] | None = None) -> None:
    """The run is red, says where the disk refused, and leaves nobody and nothing half done."""
    if command is not None:
        project.command = lambda *_: command  # type: ignore[method-assign]
    done = project.forebay(*ARGUMENTS, check=False)
    assert done.returncode == 4, done.stderr
    assert str(project.home) in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert no_process_left(project)
    assert not serves(project.home, "ads")


def finish(project: Project) -> int:
    """The same command again; the step at which it went on."""
    summary = project.home / "summary.json"
    Project(project.root, home_folder=project.home).forebay(*ARGUMENTS, "--summary", str(summary))
    facts = summary_of(summary)
    assert facts["seen"] == expected(project)
    assert facts["rows_agree"] is True
    assert no_process_left(project)
    return int(facts["windows"][0]["resumed_from_step"])


def disk_without_room(root: Path) -> None:
    pipeline = ads_pipeline(failover={"restarts_max": 2})
    project = ads_project(root / "project", rows=ROWS, pipeline=pipeline)
    disk = root / "disk"
    project.home_folder = disk / "home"
    with tiny_file_system(disk, DISK_BYTES):
        refuse(project)
        assert list((disk / "home").rglob(".*.json.*")) == []  # files that were begun are gone
        refuse(project)  # asking again changes nothing
        grow(disk, 64 << 20)
        assert finish(project) > 0


def files_without_room(root: Path) -> None:
    pipeline = ads_pipeline(failover={"restarts_max": 1})
    project = ads_project(root, rows=ROWS, pipeline=pipeline)
    refuse(project, limited(project.command(*ARGUMENTS), FILE_BYTES))
    assert finish(project) == 0


MOUNTED = [pytest.param(disk_without_room, marks=pytest.mark.chaos)] if may_mount() else []


@pytest.mark.guarantee(
    "the disk of `FOREBAY_HOME` is full",
    "red, with the path; once there is room, the same command continues from the newest seal; "
    "read again: at most one checkpoint interval",
)
@pytest.mark.parametrize("full", [*MOUNTED, files_without_room])
def test_a_full_disk_is_red_and_the_same_command_goes_on(
    tmp_path: Path, full: Callable[[Path], None]
) -> None:
    full(tmp_path)


@pytest.mark.usefixtures("jobs_here")
def test_a_summary_that_cannot_be_written_is_red_and_named(tmp_path: Path) -> None:
    project = ads_project(tmp_path, rows=500)
    done = project.forebay(*ARGUMENTS, "--summary", "/dev/full", check=False)
    assert done.returncode == 4
    assert "/dev/full" in done.stderr
    again = project.run(WINDOW, WINDOW)
    assert again["trained_windows"] == []


def test_gc_has_room_on_a_full_disk(tmp_path: Path) -> None:
    """SQLite wants some to be read, and more to forget: what was kept for it is freed first."""
    project = ads_project(tmp_path / "project", rows=500)
    disk = tmp_path / "disk"
    project.home_folder = disk / "home"
    home, reserve = Home(project.home), project.home / RESERVE_NAME
    with tiny_file_system(disk, 8 << 20) if may_mount() else nullcontext():
        database_of(home).prepare()
        database_of(home).close()
        assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
        garbage = store_of(home).put("models/ads/main", "garbage", bytes(2 << 20)).name
        if may_mount():
            fill(disk)
            for command in ("gc", "--dry-run"), ("why", "ads", "2026-03-01"):
                done = project.forebay(*command, check=False)
                full = command[0] == "why"
                assert done.returncode == (4 if full else 0), done.stderr
                assert ("no room left" in done.stderr and str(home.root) in done.stderr) is full
            done = project.forebay("init", str(disk / "new"), check=False)
            assert done.returncode == 4
            assert str(disk / "new") in done.stderr
        assert garbage in project.forebay("gc").stdout
        assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
        project.forebay("gc")
