"""A home that another version wrote: every command that needs it says what to do."""

from __future__ import annotations

import json

import pytest
from support.projects import Project, ads_project

WINDOW = "2026-03-01"
RANGE = ("--from", WINDOW, "--to", WINDOW)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Its home looks as one of before there was a database."""
    project = ads_project(tmp_path_factory.mktemp("older"), rows=100)
    plan = project.home / "ledger" / "ads" / WINDOW / "g1" / "plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text("{}")
    (project.home / "format").write_text("2\n")
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
    assert done.stderr.startswith(f"error: {project.home} was written by an older version"), done
    assert "set FOREBAY_HOME to a new one, and train again" in done.stderr
    assert sorted(project.home.rglob("*")) == before


@pytest.mark.parametrize("arguments", [("--help",), ("check",), ("down",), ("doctor",)])
def test_what_needs_no_state_does_not_care(project: Project, arguments: tuple[str, ...]) -> None:
    done = project.forebay(*arguments, check=False)
    assert "older version" not in done.stderr + done.stdout
    if arguments[0] != "doctor":  # it judges this machine
        assert done.returncode == 0, done.stderr


def test_the_way_out_works(project: Project) -> None:
    project.home.rename(project.root / "older")
    project.forebay("plan", "ads", *RANGE)
    assert json.loads((project.home / "home.json").read_text())["format"] == "3"


def test_a_home_of_a_newer_version_is_refused(project: Project) -> None:
    marker = project.home / "home.json"
    found = json.loads(marker.read_text())
    marker.write_text(json.dumps(found | {"format": "4"}))
    done = project.forebay("plan", "ads", *RANGE, check=False)
    assert done.returncode == 1, done.stderr
    assert "was written by a newer version of Forebay, in format 4: use that version" in done.stderr
