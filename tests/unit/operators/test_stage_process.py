"""Stages as processes: their results, their output, how they end."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.toy_stage import ToyStage

from forebay.errors import ConfigError, DataError, InfrastructureError, NotReadyError
from forebay.executors.stages.results import TimerResult
from forebay.home.paths import Home
from forebay.operators import stage_process
from forebay.operators.stage_process import StageCommand, StageProcess, error_text
from forebay.system.files.private_socket import lock_of

OPEN = {"state": "open", "window": "2026-03-01", "reason": "it is over"}


def stage(folder: Path, **answer: Any) -> StageCommand:
    toy = ToyStage.make(folder / "toy", timer=[answer])
    return StageCommand(toy.python, "timer", ("ads", "2026-03-01"))


def run(command: StageCommand, home: Home, deadline: float = 30.0) -> tuple[TimerResult, list[str]]:
    heard: list[str] = []
    output = StageProcess(command, home, heard.append).wait(deadline)
    return output.result(command, TimerResult), heard


def test_a_result_and_the_lines_beside_it(tmp_path: Path, home: Home) -> None:
    command = stage(tmp_path, prints=OPEN, says=["looking", "", "done"])
    result, heard = run(command, home)
    assert (result.state, result.window, heard) == ("open", "2026-03-01", ["looking", "done"])
    assert json.loads((tmp_path / "toy" / "calls.jsonl").read_text())["home"] == str(home.root)
    assert str(command) == "forebay stage timer ads 2026-03-01"


def test_what_it_inherits(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_STORE", "AWS_PROFILE", "ACME_A", "OTHER")
    for name in planted:
        monkeypatch.setenv(name, "planted")
    run(replace(stage(tmp_path, prints=OPEN), variables=("ACME_*",)), home)
    environ = json.loads((tmp_path / "toy" / "calls.jsonl").read_text())["environ"]
    assert {name for name in planted if name in environ} == {"AWS_PROFILE", "ACME_A"}
    assert environ["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1, ConfigError), (2, NotReadyError), (3, DataError), (70, InfrastructureError)],
)
def test_codes_are_remedies(code: int, kind: type[Exception], tmp_path: Path, home: Home) -> None:
    says = ["reading", "error: part.parquet is corrupt", "  row 7"]
    command = stage(tmp_path, code=code, says=says)
    with pytest.raises(kind, match=r"\Apart.parquet is corrupt\n  row 7\Z"):
        run(command, home)


def test_an_end_without_a_word_names_the_command(tmp_path: Path, home: Home) -> None:
    with pytest.raises(InfrastructureError, match=r"`forebay stage timer .*` ended with .* code 9"):
        run(stage(tmp_path, code=9), home)


@pytest.mark.parametrize(
    ("prints", "kind", "text"),
    [
        ("one\ntwo", InfrastructureError, "printed 2 lines instead of one result"),
        ('{"state": "asleep"}', ConfigError, "printed no TimerResult.*same version of forebay"),
    ],
)
def test_anything_but_one_result_is_refused(
    prints: str, kind: type[Exception], text: str, tmp_path: Path, home: Home
) -> None:
    with pytest.raises(kind, match=text):
        run(stage(tmp_path, prints=prints), home)


def test_a_stage_ends_at_its_deadline_with_its_children(tmp_path: Path, home: Home) -> None:
    process = StageProcess(stage(tmp_path, prints=OPEN, seconds=60), home, lambda _: None)
    with pytest.raises(InfrastructureError, match=r"had not ended after 0.5 s and was stopped"):
        process.wait(0.5)
    assert not psutil.pid_exists(process._process.pid)


def test_a_stage_is_ended_from_a_signal_handler(tmp_path: Path, home: Home) -> None:
    """`end` comes while `wait` waits: the wait ends, and says by what."""
    command = stage(tmp_path, prints=OPEN, seconds=60)
    process = StageProcess(command, home, lambda _: None)
    threading.Timer(0.3, process.end).start()
    began, output = time.monotonic(), process.wait(30)
    assert time.monotonic() - began < 10
    with pytest.raises(InfrastructureError, match="was ended by SIGTERM"):
        output.result(command, TimerResult)


def test_an_interpreter_that_is_not_there(home: Home) -> None:
    command = StageCommand("/nowhere/python", "timer", ())
    with pytest.raises(ConfigError, match=r"/nowhere/python cannot be started.*\[forebay\] python"):
        StageProcess(command, home, lambda _: None)


def test_output_is_bounded(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_process, "OUTPUT_BYTES_MAX", 1_000)
    output = StageProcess(stage(tmp_path, prints="x" * 100_000), home, lambda _: None).wait(30)
    assert len(output.printed) <= 1_000


def test_the_error_is_what_was_said_last() -> None:
    assert error_text(["a", "error: b", "error: c", "d"]) == "c\nd"
    assert (error_text(["a", "b"]), error_text([])) == ("a\nb", "")


def test_a_real_stage_says_what_is_wrong_however_its_streams_are_buffered(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wraps its standard streams once more: the first ones must stay open."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    words = ("ads", "2026-03-01", "--config", str(tmp_path / "none"), "--line", "main")
    with pytest.raises(ConfigError, match="none"):
        run(StageCommand(sys.executable, "timer", words), home)


def test_folders_of_servers_that_were_killed_long_ago_go_and_no_others(
    tmp_path: Path, home: Home
) -> None:
    names = ("old", "new", "held")
    for name in names:
        (home.stages / name).mkdir(parents=True)
        (home.stages / name / "lock").touch()
    for name in ("old", "held"):
        os.utime(home.stages / name, (0, 0))
    lock = lock_of(home.stages / "held")
    assert lock.acquire(1)
    words = ("ads", "2026-03-01", "--config", str(tmp_path / "none"), "--line", "main")
    with pytest.raises(ConfigError):
        run(StageCommand(sys.executable, "timer", words), home)
    lock.release()
    assert {name for name in names if (home.stages / name).exists()} == {"new", "held"}
