"""A home that another version wrote: every command that needs it says what to do."""

from __future__ import annotations

import json

import pytest
from support.projects import Project, ads_project

from forebay.home.database.identity import MARKER_NAME, Marker
from forebay.home.database.tables import FORMAT

WINDOW = "2026-03-01"
RANGE = ("--from", WINDOW, "--to", WINDOW)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = ads_project(tmp_path_factory.mktemp("older"), rows=100)
    project.home.mkdir()
    marker = Marker(id="x", format="4", database="sqlite")
    (project.home / MARKER_NAME).write_text(marker.model_dump_json())
    return project


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "ads", *RANGE),
        ("run", "ads", *RANGE),
        ("stage", "timer", "ads", WINDOW),
        ("why", "ads", WINDOW),
        ("explain", "ads", *RANGE),
        ("forget", "ads", WINDOW),
        ("models", "ls", "ads"),
        ("dead", "ls", "ads"),
        ("cancel", "ads"),
        ("report", "ads", *RANGE),
        ("up",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_older_home_is_refused(project: Project, arguments: tuple[str, ...]) -> None:
    before = sorted(project.home.rglob("*"))
    done = project.forebay(*arguments, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(f"error: {project.home} has format 4 (home.json), but this"), done
    assert "use the version that wrote it, or set FOREBAY_HOME" in done.stderr
    assert sorted(project.home.rglob("*")) == before


@pytest.mark.parametrize("arguments", [("--help",), ("check",), ("down",), ("doctor",)])
def test_what_needs_no_state_does_not_care(project: Project, arguments: tuple[str, ...]) -> None:
    done = project.forebay(*arguments, check=False)
    assert "format 4" not in done.stderr + done.stdout
    if arguments[0] != "doctor":  # it judges this machine
        assert done.returncode == 0, done.stderr


def test_the_way_out_works(project: Project) -> None:
    project.home.rename(project.root / "older")
    project.forebay("plan", "ads", *RANGE)
    assert json.loads((project.home / MARKER_NAME).read_text())["format"] == FORMAT
