"""`forebay home check` and `backup`: training continues in a copy made while a job trained."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from support.kill_cases import expected_of
from support.kills import no_process_left, running, signal_role, wait_for_rows
from support.projects import Project, ads_project
from support.truth_rows import links_of, served_of, stored_of

from forebay.cli import run
from forebay.home.database.open import database_of
from forebay.home.paths import Home

FIRST, SECOND, LAST = "2026-03-01", "2026-03-02", "2026-03-03"
RANGE = ("run", "ads", "--from", FIRST, "--to", LAST)
DAYS, ROWS = 3, 60_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return ads_project(tmp_path_factory.mktemp("homes"), days=DAYS, rows=ROWS)


@pytest.mark.guarantee(
    "a home is copied while a window trains",
    "nothing; the copy continues from the newest linked window; read again: the window in "
    "training, in the copy",
)
def test_a_copy_of_a_home_that_trains_goes_on_training(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    with running(project, *RANGE, "--summary", str(tmp_path / "first.json")) as run:
        wait_for_rows(project, SECOND, ROWS // 2, run)
        stopped = signal_role(project, "trainer", signal.SIGSTOP)  # in the middle of its window
        try:
            said = project.forebay("home", "backup", str(folder)).stdout
        finally:
            os.kill(stopped, signal.SIGCONT)
        output = run.communicate(timeout=120)[0]
        assert run.returncode == 0, output
    assert f"use it with FOREBAY_HOME={folder}" in said
    copy = Project(project.root, project.pipeline, home_folder=folder)
    before = copy.forebay("home", "check")
    assert "faults: 0" in before.stdout
    assert links_of(folder, "ads", FIRST), "it has what was trained when it was made"
    assert not links_of(folder, "ads", LAST)
    assert copy.forebay("why", "ads", SECOND).returncode == 0
    found = copy.run(FIRST, LAST)
    assert FIRST in found["reused_windows"]
    assert found["trained_windows"][-1] == LAST
    expected = expected_of(project, DAYS)
    assert found["seen"] == expected
    assert json.loads((tmp_path / "first.json").read_text())["seen"] == expected
    assert served_of(folder, "ads")[2].is_relative_to(folder)
    assert served_of(project.home, "ads")[2].is_relative_to(project.home)
    for each in (project, copy):
        assert "faults: 0" in each.forebay("home", "check").stdout
        assert no_process_left(each)


def test_damage_and_a_copy_into_the_home_are_named(project: Project) -> None:
    place = stored_of(project.home, "ads", FIRST, "steps")
    assert place is not None
    place.write_bytes(place.read_bytes()[:-1])
    done = project.forebay("home", "check", check=False)
    assert done.returncode == 3, done.stderr
    name = f"{project.home}/store/"
    where = f"link_files: pipeline ads, line main, window {FIRST}, generation 1, kind steps: {name}"
    assert done.stdout.startswith(where)
    assert "Restore it from a backup, or correct FOREBAY_STORE" in done.stdout
    found = json.loads(project.forebay("home", "check", "--output", "json", check=False).stdout)
    assert found["rows"]["links"] >= DAYS
    assert found["read_bytes"] > 0
    assert [fault["subject"]["kind"] for fault in found["faults"]] == ["steps"]
    done = project.forebay("home", "backup", str(project.home / "copy"), check=False)
    assert done.returncode == 1
    assert "name a folder outside" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_copy_s_place_can_be_pasted_into_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    database_of(Home(tmp_path / "home")).transact(lambda _rows: None)
    assert run(["home", "backup", str(tmp_path / "a copy")]) == 0
    assert f"FOREBAY_HOME='{tmp_path}/a copy'" in capsys.readouterr().out
