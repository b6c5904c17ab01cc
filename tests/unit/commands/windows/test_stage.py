"""`forebay stage`: lines for people on standard error, the one to read last; JSON on the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forebay.commands.windows import stage
from forebay.executors.stages import evaluate, plan
from forebay.executors.stages.results import EvaluateResult, SinkResult

WINDOW = "2026-03-05"


def answers(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, result: Any) -> None:
    monkeypatch.setattr(stage, "_target", lambda *_: None)
    monkeypatch.setattr(module, name, lambda *_, **__: result)


def test_evaluate_ends_with_the_figure_that_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = EvaluateResult(
        window=WINDOW,
        generation=1,
        label_not_known={"history": 1_200},
        labels_not_known={"sale": {"history": 1}},
        rows_line="rows  planned = served",
        words=["stream 0.6", "mixture 0.7 so far, 378 of 919 rows judged"],
        warnings=["labels come late"],
    )
    answers(monkeypatch, evaluate, "evaluate_window", result)
    stage.evaluate("ads", WINDOW, Path("/yaml"), "trial")
    shown = capsys.readouterr()
    place = "--line trial --config /yaml"
    assert shown.err.splitlines() == [
        "WARNING: pipeline ads: labels come late",
        f"intervals and plots: forebay report ads --from {WINDOW} --to {WINDOW} {place}",
        "source history: 1,200 rows not trained on because the label was not known in time",
        "source history: 1 row not trained on for label sale, null or not known in time",
        "rows  planned = served",
        "stream 0.6",
        "mixture 0.7 so far, 378 of 919 rows judged",
    ]
    assert json.loads(shown.out)["words"] == result.words
    answers(monkeypatch, evaluate, "evaluate_window", EvaluateResult(window=WINDOW, generation=1))
    stage.evaluate("ads", WINDOW)
    report, last = capsys.readouterr().err.splitlines()
    assert (report[-10:], last) == (WINDOW, ""), "what is the default is not written"


def test_notes_come_before_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = SinkResult(window=WINDOW, generation=2, tasks=1, recorded=True, notes=["data changed"])
    answers(monkeypatch, plan, "record_window", result)
    stage.sink("ads", WINDOW, "ads/run#0")
    assert capsys.readouterr().err.splitlines() == [
        "note: data changed",
        f"window {WINDOW}: generation 2 is recorded",
    ]
