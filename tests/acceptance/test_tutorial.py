"""docs/tutorial.md, typed into a shell exactly as written, from an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.typed_page import Command, File, steps

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.rest import AirflowApi
from forebay.home.paths import Home

PAGE = Path("docs/tutorial.md")
AIRFLOW = "console airflow"
COMMAND_SECONDS = 240
GREEN_SECONDS = 420


class Reader:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unset = {"PYTHONPATH", "FOREBAY_HOME"}
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        programs = Path(sys.executable).parent
        self.environment = {**kept, "PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, command: Command) -> None:
        if command.text.startswith("cd "):
            self.folder /= command.text.removeprefix("cd ")
            return
        ended = subprocess.run(
            ["bash", "-c", command.text],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        printed = f"$ {command.text}\n{ended.stdout}"
        assert ended.returncode == 0, printed
        assert "Traceback" not in ended.stdout, printed
        assert command.is_shown_in(ended.stdout), f"{printed}\nshown:\n{command.shown}"


@pytest.mark.timeout(600)
def test_the_page_from_an_empty_directory(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    typed = []
    for step in steps(PAGE):
        if isinstance(step, File):
            step.write(reader.folder)
        else:
            reader.type(step)
            typed.append(step.text.split()[:2])
    named = ("init", "check", "run", "report", "models", "score")
    assert [["forebay", name] for name in named if ["forebay", name] not in typed] == []
    assert "mixture+fnw" in (reader.folder / "report.html").read_text()


@pytest.mark.chaos
@pytest.mark.timeout(1200)
def test_the_page_with_airflow(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    embedded = Embedded(Home(tmp_path / "shop" / ".forebay"))
    try:
        for step in steps(PAGE, AIRFLOW):
            if isinstance(step, File):
                step.write(reader.folder)
                continue
            if step.text == "forebay why purchases 2026-03-12":
                waited = green_and_skipped(AirflowApi(embedded.endpoint()))
                assert "windows 2026-03-12 to " in waited
            reader.type(step)
    finally:
        embedded.stop()
        embedded.remove_database()


def green_and_skipped(api: AirflowApi) -> str:
    """Wait for the run of 12 March and the one that unpausing made; what its timer says."""
    deadline = time.monotonic() + GREEN_SECONDS
    runs: list[dict[str, Any]] = []
    while [run["state"] for run in runs] != ["success"] * 2:
        assert time.monotonic() < deadline, runs
        time.sleep(1)
        runs = api.dag_runs("purchases")
    tasks = [api.task_instances("purchases", run["dag_run_id"]) for run in runs]
    asked, made = ({task["task_id"]: task["state"] for task in each} for each in tasks)
    assert set(asked.values()) == {"success"}
    assert made.pop("timer") == "success"
    assert set(made.values()) == {"skipped"}
    return "\n".join(api.log("purchases", runs[1]["dag_run_id"], "timer"))


def test_the_page_shows_what_each_command_prints() -> None:
    """Or its outputs would be checked for nothing."""
    commands = [step for step in steps(PAGE, AIRFLOW) if isinstance(step, Command)]
    silent = [each.text for each in commands if not "".join(each.shown).strip("…")]
    assert silent == ["cd shop"]


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        (["a b", "c"], "x a   b\nc y", True),
        (["a … d"], "a b\nc d", True),
        (["1.5 (2)"], "1x5 (2)", False),
        (["b", "a"], "a b", False),
        (["a"], "b", False),
    ],
)
def test_shown_lines_are_compared(shown: list[str], printed: str, expected: bool) -> None:
    assert Command("x", shown).is_shown_in(printed) is expected
