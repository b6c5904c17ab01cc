"""The demo as `make demo` plays it: exit 0, its closing line, and nobody left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

CLOSING = "0 rows lost, 0 repeated (checked in the model)"


def play(home: Path, **variables: str) -> list[str]:
    """The lines of one demo below `home`."""
    kept = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
    ended = subprocess.run(
        [sys.executable, "-m", "forebay.demo"],
        env={**kept, **variables, "FOREBAY_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for process in psutil.process_iter(["environ"]):
        assert str(home) not in (process.info["environ"] or {}).get("FOREBAY_HOME", "")
    return ended.stdout.splitlines()


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_the_demo_and_what_a_second_run_reuses(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = play(home)
    assert first[-1] == CLOSING
    assert (home / "demo" / "report.html").exists()
    second = play(home)
    assert second[-1] == CLOSING
    assert any(line.startswith("data  reused") for line in second)
    assert any("0 to train, 15 reused" in line for line in second)


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_three_kills_on_stage(tmp_path: Path) -> None:
    lines = play(tmp_path / "home", KILL="1")
    assert lines[-1] == f"3 kills, {CLOSING}"
    summary = json.loads((tmp_path / "home-kill" / "demo" / "summary.json").read_text())
    assert all(summary["restarts"][role] == 1 for role in ("data", "driver", "trainer"))


@pytest.mark.chaos
@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_the_stream_on_kafka(tmp_path: Path) -> None:
    lines = play(tmp_path / "home", STREAM="kafka")
    assert lines[-1] == CLOSING


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_stream_that_comes_before_its_labels(tmp_path: Path) -> None:
    lines = play(tmp_path / "home", WAIT="3h")
    (warning,) = [line for line in lines if line.startswith("WARNING")]
    assert warning.startswith("WARNING  mixture is a bad choice here: only 31% of positives")
    assert lines[-1] == CLOSING
