"""How the demo is set, and what it ends with: commands that work as printed, and nobody left."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from support.there import there

from examples.demo import show as leftovers
from examples.demo.next_steps import (
    EXAMPLE_ROW,
    backfill_link,
    check_command,
    score_command,
    up_command,
)
from examples.demo.settings import Settings
from examples.demo.show import require_nobody_left
from forebay.embedded.kafka.broker import BROKER_ID
from forebay.errors import InfrastructureError, UsageError
from forebay.home.paths import Home


def test_the_broken_example_names_every_place(tmp_path: Path) -> None:
    folder = tmp_path / "it is broken"
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "older.yaml").write_text("left by an earlier demo")
    program, *words = shlex.split(check_command(folder))
    assert Path(program).name == "forebay"
    ended = subprocess.run(
        [sys.executable, "-m", "forebay", *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    said = ended.stdout.splitlines()
    assert [line.partition(": ")[0] for line in said] == [
        f"{folder}/sources/clicks.yaml:2:7",
        f"{folder}/sources/clicks.yaml:7:7",
        f"{folder}/pipelines/broken.yaml:7:5",
    ]
    assert all("did you mean" in line for line in said)


def test_commands_survive_the_shell(tmp_path: Path) -> None:
    words = shlex.split(score_command("/a model/saved"))
    assert (words[1:4], json.loads(words[4])) == (["score", "/a model/saved", "--row"], EXAMPLE_ROW)
    assert backfill_link("http://127.0.0.1:80", "ads").startswith("http://127.0.0.1:80/dags/ads ")
    home, *words = shlex.split(up_command(tmp_path, Path("config").absolute()))
    assert (home, words[1:]) == (f"FOREBAY_HOME={tmp_path}", ["up", "--config", "config"])


@pytest.mark.parametrize(
    ("place", "job_id", "counts"),
    [
        ("home", "flights.main.2013-06-01.g1", True),
        ("home", BROKER_ID, False),  # it ends later
        ("other", "flights.main.2013-06-01.g1", False),
    ],
)
def test_only_processes_of_jobs_of_this_home_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, job_id: str, counts: bool
) -> None:
    monkeypatch.setattr(leftovers, "END_SECONDS", 0.3)
    marks = {"FOREBAY_HOME": str(tmp_path / place), "FOREBAY_JOB_ID": job_id}
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    pipe, environment = subprocess.PIPE, {**os.environ, **marks}
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as process:
        there(process.stdout).readline()
        left = pytest.raises(InfrastructureError, match=rf"still running: \[{process.pid}\]")
        with left if counts else nullcontext():
            require_nobody_left(Home(tmp_path / "home"), airflow=False)
        process.kill()
    require_nobody_left(Home(tmp_path / "home"), airflow=False)


def test_defaults() -> None:
    settings = Settings.of(dict.fromkeys(("AIRFLOW", "STREAM", "KILL", "WAIT"), ""))
    assert (settings.airflow, settings.kafka, settings.kill) == (True, False, False)
    assert (settings.wait, settings.home.root) == (timedelta(hours=9), Path(".forebay").absolute())


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"STREAM": "kafka"}, ".forebay-kafka"),
        ({"KILL": "1"}, ".forebay-kill"),
        ({"WAIT": "3h"}, ".forebay-wait-3h"),
        ({"STREAM": "kafka", "KILL": "1", "WAIT": "90m"}, ".forebay-kafka-kill-wait-90m"),
        ({"WAIT": "540m"}, ".forebay"),
        ({"AIRFLOW": "0"}, ".forebay"),
        ({"FOREBAY_HOME": "/somewhere/else", "KILL": "1"}, "/somewhere/else-kill"),
    ],
)
def test_every_way_has_its_own_home(environ: dict[str, str], name: str) -> None:
    assert Settings.of(environ).home.root == Path(name).absolute()


@pytest.mark.parametrize("wrong", ["STREAM=kafak", "KILL=yes", "WAIT=3", "AIRFLOW=no"])
def test_other_values_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        Settings.of(dict([wrong.split("=")]))
