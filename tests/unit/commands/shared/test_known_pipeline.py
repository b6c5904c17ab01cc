"""A mistyped name of a pipeline or line in commands that read no YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import request, store_job
from support.letters import local_letters
from support.links import link
from support.model_lines import record

from forebay import cli
from forebay.executors.model_line.chain import ModelChain
from forebay.home.database.format import record_format
from forebay.home.paths import Home

COMMANDS = {
    "cancel": "no job of pipeline",
    "models ls": "has no trained window",
    "dead ls": "has no dead letters",
    "dead show": "has no dead letters",
    "jobs ls": "no jobs of pipeline",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A folder with the declaration of `flights`, which is no YAML, and a home without records."""
    declared = tmp_path / "config" / "pipelines" / "flights.yaml"
    declared.parent.mkdir(parents=True)
    declared.write_text("{")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


def run(command: str, *arguments: str) -> int:
    return cli.run([*command.split(), *arguments])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_nothing_knows_is_refused(
    command: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, meant in (("flihgts", "flights"), ("zzz", "")):
        assert run(command, given) == 1
        shown = capsys.readouterr()
        way_out = f" (did you mean {meant}?)" if meant else ""
        assert shown.err == (
            f"error: no pipeline '{given}' in config/pipelines, and no record of one in "
            f"{home.root}{way_out}. Known: flights\n"
        )
        assert shown.out == ""
    record(ModelChain(home, "clicks"), link("2026-03-01"))
    as_json = [] if command == "cancel" else ["--output", "json"]
    assert run(command, "clikcs", *as_json) == 1
    assert "(did you mean clicks?). Known: clicks, flights" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_declared_name_is_known_whatever_its_file_holds(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "flights") == 0
    (tmp_path / "config").rename(tmp_path / "other")
    assert run(command, "flights", "--config", "other") == 0
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count(COMMANDS[command]) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_recorded_name_is_known_without_a_file(
    command: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    record_format(home)
    local_letters(ModelChain(home, "training"), "2026-03-01", 1)
    asked = request(home, "jobbed.main.2026-03-01.g1", {"2026-03-01": 1}, pipeline="jobbed")
    store_job(asked, "succeeded")
    for name in ("training", "jobbed"):
        assert run(command, name) == 0
    assert "no pipeline" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["cancel", "models ls", "jobs ls"])
def test_a_line_that_nothing_knows_is_refused(
    command: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    record(ModelChain(home, "flights", "trial"), link("2026-03-01"))
    asked = request(home, "flights.jobbed.2026-03-01.g1", {"2026-03-01": 1}, "flights", "jobbed")
    store_job(asked, "succeeded")
    assert run(command, "flights", "--line", "trail") == 1
    assert capsys.readouterr().err == (
        "error: pipeline 'flights' has no line 'trail' (did you mean trial?). "
        "Known: jobbed, main, trial\n"
    )
    for known in ("main", "trial", "jobbed"):
        assert run(command, "flights", "--line", known) == 0
