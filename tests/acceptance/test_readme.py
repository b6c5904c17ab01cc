"""Every example command of README.md works, in the order in which it appears there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from examples.demo.data.flight_data import prepare
from examples.demo.data.market_data import prepare_market
from forebay.cli import COMMANDS

README = Path("README.md")
REPOSITORY = Path.cwd()


def examples(mark: str) -> list[str]:
    """Commands of the fenced blocks with this mark."""
    blocks = re.findall(rf"```{mark}\n(.*?)```", README.read_text(), re.DOTALL)
    lines = "".join(blocks).splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


class Newcomer:
    """A folder with the demo's YAML and data, and a shell's environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".forebay"
        for part in ("sources", "pipelines"):
            shutil.copytree(REPOSITORY / "config" / part, folder / "config" / part)
        # The same pipeline with two days of history before it in place of five months.
        pipeline = folder / "config" / "pipelines" / "flights.yaml"
        text = pipeline.read_text()
        pipeline.write_text(text.replace("warm_start: 2013-01-01", "warm_start: 2013-05-30"))
        assert pipeline.read_text() != text

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        typed = command.replace("/tmp/", f"{self.folder}/")
        if "MODEL" in typed:
            summary = json.loads((self.folder / "flights.json").read_text())
            typed = typed.replace("MODEL", summary["model"])
        program, *arguments = shlex.split(typed)
        assert program == "forebay"
        environ = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "forebay.cli", *arguments],
            cwd=self.folder,
            env={**environ, "FOREBAY_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert ended.returncode == 0, f"$ {command}\n{ended.stdout}\n{ended.stderr}"
        assert "Traceback" not in ended.stderr
        return ended


@pytest.mark.timeout(600)
def test_the_examples(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    prepare(newcomer.home / "demo" / "data", timedelta(hours=9), with_log=True)
    prepare_market(newcomer.home / "demo" / "market")
    for command in examples("console"):
        ended = newcomer.type(command)
        if "--output json" in command:
            json.loads(ended.stdout)


@pytest.mark.kafka
def test_the_examples_with_a_broker(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    started = examples("console kafka")
    try:
        for command in started:
            newcomer.type(command)
    finally:
        newcomer.type("forebay kafka stop")


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_the_examples_with_airflow(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    prepare(newcomer.home / "demo" / "data", timedelta(hours=9), with_log=True)
    prepare_market(newcomer.home / "demo" / "market")
    try:
        for command in examples("console airflow"):
            newcomer.type(command)
    finally:
        newcomer.type("forebay down")


def test_every_command_has_an_example() -> None:
    marks = ("console", "console kafka", "console airflow")
    shown = {shlex.split(line)[1] for mark in marks for line in examples(mark)}
    assert shown == set(COMMANDS)


def test_the_targets_that_are_named_exist() -> None:
    named = set(re.findall(r"`?make ([a-z-]+)", README.read_text()))
    targets = set(re.findall(r"^([a-z-]+):", Path("Makefile").read_text(), re.MULTILINE))
    assert named <= targets
    assert "demo" in named
