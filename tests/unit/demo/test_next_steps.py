"""The commands that the demo suggests next work as printed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from examples.demo.next_steps import EXAMPLE_ROW, check_command, score_command, up_command


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


def test_the_row_to_score_survives_the_shell() -> None:
    words = shlex.split(score_command("/a model/saved"))
    assert (words[1:4], json.loads(words[4])) == (["score", "/a model/saved", "--row"], EXAMPLE_ROW)


def test_airflow_is_started_again_for_the_home_of_the_demo(tmp_path: Path) -> None:
    home, *words = shlex.split(up_command(tmp_path, Path("config").absolute()))
    assert (home, words[1:]) == (f"FOREBAY_HOME={tmp_path}", ["up", "--config", "config"])
