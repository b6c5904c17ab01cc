"""Every example command of README.md works, in the order in which it appears there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.projects import Project
from support.standing import processes
from support.there import until

from examples.demo.data.flight_data import prepare
from examples.demo.data.market_data import prepare_market
from forebay.cli import COMMANDS

README = Path("README.md")
REPOSITORY = Path.cwd()


def examples(mark: str) -> list[str]:
    blocks = re.findall(rf"```{mark}\n(.*?)```", README.read_text(), re.DOTALL)
    lines = "".join(blocks).splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


class Newcomer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = Project(folder)
        for part in ("sources", "pipelines"):
            shutil.copytree(REPOSITORY / "config" / part, folder / "config" / part)
        # The same pipeline with two days of history before it in place of five months.
        pipeline = folder / "config" / "pipelines" / "flights.yaml"
        text = pipeline.read_text()
        pipeline.write_text(text.replace("warm_start: 2013-01-01", "warm_start: 2013-05-30"))
        assert pipeline.read_text() != text

    def prepare(self) -> None:
        data = self.project.home / "demo"
        prepare(data / "data", timedelta(hours=9), with_log=True)
        prepare_market(data / "market")

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        typed = command.replace("/tmp/", f"{self.folder}/")
        if "MODEL" in typed:
            summary = json.loads((self.folder / "flights.json").read_text())
            typed = typed.replace("MODEL", summary["model"])
        program, *arguments = shlex.split(typed)
        assert program == "forebay"
        ended = self.project.forebay(*arguments, check=False, timeout_seconds=240)
        assert ended.returncode == 0, f"$ {command}\n{ended.stdout}\n{ended.stderr}"
        assert "Traceback" not in ended.stderr
        return ended


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    yield (found := Newcomer(tmp_path))
    # Those of the windows that were run by hand, of which other tests must not find anything.
    found.project.forebay("jobs", "runners", "--end", check=False)
    assert until(lambda: not processes(found.project, "flights"), 20)


@pytest.mark.timeout(600)
def test_the_examples(newcomer: Newcomer) -> None:
    newcomer.prepare()
    for command in examples("console"):
        ended = newcomer.type(command)
        if "--output json" in command:
            json.loads(ended.stdout)


@pytest.mark.kafka
def test_the_examples_with_a_broker(newcomer: Newcomer) -> None:
    try:
        for command in examples("console kafka"):
            newcomer.type(command)
    finally:
        newcomer.type("forebay kafka stop")


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_the_examples_with_airflow(newcomer: Newcomer) -> None:
    newcomer.prepare()
    try:
        for command in examples("console airflow"):
            newcomer.type(command)
    finally:
        newcomer.type("forebay down")


def test_every_command_has_an_example() -> None:
    marks = ("console", "console kafka", "console airflow")
    shown = {shlex.split(line)[1] for mark in marks for line in examples(mark)}
    assert shown == set(COMMANDS)
