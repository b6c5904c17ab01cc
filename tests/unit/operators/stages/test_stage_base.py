"""What all tasks share: pauses that end with the task, commands, and messages logged once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.toy_stage import ToyStage

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.errors import InfrastructureError
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages.data_executors import DataExecutorsOperator
from forebay.operators.stages.evaluate import EvaluateOperator
from forebay.operators.stages.sink import SinkOperator
from forebay.operators.stages.training_executors import TrainingExecutorsOperator

WINDOW = WindowGrid(WindowSize.DAY).parse("2026-03-05")
ASKED = StageRequest("ads", "mine", "sink", WINDOW, 0, 0, reprocess=False)


def sink(**more: Any) -> SinkOperator:
    return SinkOperator(task_id="sink", pipeline="ads", config="/config", python="py", **more)


def test_a_pause_lasts_as_long_as_it_is_told_and_ends_with_the_task() -> None:
    task = sink()
    for seconds in (0.0, 0.3):
        began = time.monotonic()
        task.pause(seconds)
        assert seconds <= time.monotonic() - began < seconds + 5
    task.on_kill()
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match="task was killed"):
        task.pause(60)
    assert time.monotonic() - began < 30


def test_a_stage_is_called_for_the_window() -> None:
    command = sink(line="second").command(ASKED, "--again")
    assert (command.python, command.stage) == ("py", "sink")
    wanted = ("ads", "2026-03-05", "--again", "--config", "/config", "--line", "second")
    assert command.arguments == wanted
    where = {"pipeline": "ads", "config": "/config", "python": "py"}
    assert EvaluateOperator(task_id="e", **where).command(ASKED).stage == "evaluate"
    for job in (DataExecutorsOperator, TrainingExecutorsOperator):
        assert job(task_id="j", **where).command(ASKED).stage == "submit"


def test_warnings_of_a_stage_are_warnings_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, str]] = []

    def level(name: str) -> Callable[..., None]:
        return lambda text, *values: said.append((name, text % values))

    log = SimpleNamespace(info=level("info"), warning=level("warning"))
    monkeypatch.setattr(SinkOperator, "log", log)
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    recorded = {"window": WINDOW.key, "generation": 1, "tasks": 2, "recorded": True}
    says = ["WARNING: it is stale", "window 2026-03-05: recorded"]
    toy = ToyStage.make(tmp_path / "toy", sink=[{"says": says, "prints": recorded}])
    SinkOperator(task_id="sink", pipeline="ads", config="/c", python=toy.python).work(ASKED, {})
    assert said == [
        ("info", "forebay stage sink ads 2026-03-05"),
        ("warning", "it is stale"),
        ("info", "window 2026-03-05: recorded"),
    ]
