"""The demo as `make demo` plays it: exit 0, its closing line, and nobody left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest
from support.terminals import in_terminal
from support.there import eventually

CAPTURES = Path(".forebay-captures")
CLOSING = "0 rows lost, 0 repeated (checked in the model)"
COMMAND = [sys.executable, "-m", "examples.demo"]
PLAY_SECONDS = 900.0
END_SECONDS = 150.0


def environ(home: Path, **variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
    return {**kept, **variables, "FOREBAY_HOME": str(home)}


def nobody_left(home: Path) -> None:
    for process in psutil.process_iter(["environ", "cmdline"]):
        given = process.info["environ"] or {}
        assert str(home) not in given.get("FOREBAY_HOME", ""), process
        assert str(home) not in given.get("FOREBAY_AIRFLOW", ""), process


def play(home: Path, **variables: str) -> list[str]:
    """The lines of one demo below `home`."""
    ended = subprocess.run(
        COMMAND,
        env=environ(home, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=PLAY_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    nobody_left(home)
    return ended.stdout.splitlines()


def play_in_terminal(home: Path, **variables: str) -> list[str]:
    """The same in a terminal of 80 columns; what it shows stays in `.forebay-captures/`."""
    added = {**variables, "FOREBAY_HOME": str(home)}
    seen = in_terminal(COMMAND, Path.cwd(), added, PLAY_SECONDS)
    assert seen.exit_code == 0, seen.text
    nobody_left(home)
    CAPTURES.mkdir(exist_ok=True)
    (CAPTURES / "demo.txt").write_text("\n".join(seen.lines))
    return [line for line in seen.lines if line]


def next_command(lines: list[str], start: str) -> str:
    (found,) = [line for line in lines if line.startswith(f"next  {start}")]
    return found.partition(": ")[2]


def type_in(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "home"


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_through_airflow_and_what_later_calls_reuse(home: Path) -> None:
    first = play(home)
    assert first[-1] == CLOSING
    assert "windows  7 trained, 0 reused" in first
    page = (home / "demo" / "report.html").read_text()
    assert page.count("<svg") == page.count("<figcaption>") >= 5
    scored = type_in(next_command(first, "score a row"))
    assert scored.returncode == 0, scored.stderr
    assert re.fullmatch(r"\s*score\s+memory\n0\.\d+\s+0\.\d+\s*", scored.stdout), scored.stdout
    broken = type_in(next_command(first, "see what Forebay says"))
    assert broken.returncode == 1
    assert all(re.search(r"\.yaml:\d+:\d+: ", line) for line in broken.stdout.splitlines())
    second = play(home)
    assert second[-1] == CLOSING
    assert any(line.startswith("data  reused") for line in second)
    assert "windows  0 trained, 7 reused" in second
    without = play_in_terminal(home, AIRFLOW="0")
    assert without[-1] == CLOSING
    assert any("0 to train, 8 reused" in line for line in without)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_on_a_terminal_airflow_stays_until_ctrl_c(home: Path) -> None:
    """After the windows are trained, so that nothing but the terminal is new."""

    def answers(text: str) -> bool:
        if "until Ctrl-C" not in text:
            return False
        assert CLOSING in text
        (url,) = set(re.findall(r"http://127\.0\.0\.1:\d+(?=  user)", text))
        with urllib.request.urlopen(f"{url}/api/v2/version", timeout=60) as answer:
            assert json.load(answer)["version"].startswith("3.")
        return True

    added = {"FOREBAY_HOME": str(home), "TERM": "xterm", "COLUMNS": "160"}
    seen = in_terminal(COMMAND, Path.cwd(), added, 600 + END_SECONDS, answers)
    assert seen.exit_code == 0, seen.text
    assert CLOSING in seen.text
    nobody_left(home)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_ctrl_c_while_windows_train_takes_everything_down(tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(COMMAND, env=environ(home), stdout=stream, stderr=stream)
    try:
        eventually(lambda: "  training  " in log.read_text() or process.poll() is not None, 600)
        process.send_signal(signal.SIGINT)
        assert process.wait(END_SECONDS) == 130, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert log.read_text().splitlines()[-1] == "interrupted"
    nobody_left(home)


@pytest.mark.chaos
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("airflow", ["1", "0"])
def test_three_kills_on_stage(tmp_path: Path, airflow: str) -> None:
    lines = play(tmp_path / "home", KILL="1", AIRFLOW=airflow)
    assert lines[-1] == f"3 kills, {CLOSING}"
    summary = json.loads((tmp_path / "home-kill" / "demo" / "summary.json").read_text())
    assert all(summary["restarts"][role] == 1 for role in ("data", "driver", "trainer"))


@pytest.mark.chaos
@pytest.mark.kafka
@pytest.mark.timeout(1000)
def test_the_stream_on_kafka(tmp_path: Path) -> None:
    lines = play(tmp_path / "home", STREAM="kafka")
    assert lines[-1] == CLOSING


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_stream_that_comes_before_its_labels(tmp_path: Path) -> None:
    lines = play(tmp_path / "home", WAIT="3h", AIRFLOW="0")
    # Others are about probabilities.
    flights, market = [line for line in lines if "is a bad choice here" in line]
    assert flights.startswith("WARNING  mixture is a bad choice here: only 34% of positives")
    assert market.startswith("WARNING  stream is a bad choice here")
    assert lines[-1] == CLOSING


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_the_generated_market_tells_the_same_story_three_times(tmp_path: Path) -> None:
    """What the demo itself only reports is demanded here: who wins, and that it is no chance."""
    stories = []
    for number in range(3):
        home = tmp_path / f"home{number}"
        lines = play(home, AIRFLOW="0")
        assert any("generated ad market, nothing in it is real" in line for line in lines)
        summary = json.loads((home / "demo" / "conversions.json").read_text())
        assert len(summary["windows"]) == 48
        stories.append(
            {
                (one["a"], one["b"]): (one["differ"], one["value"] > 0)
                for one in summary["pooled"]["differences"]
            }
        )
    first, *others = stories
    assert others == [first, first]
    for rival in ("stream", "batch"):
        assert first["mixture+head", rival] == (True, True)
