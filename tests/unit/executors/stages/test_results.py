"""A stage that has nothing to report prints nothing."""

from __future__ import annotations

import pytest

from forebay.executors.stages.results import EvaluateResult, SinkResult, SourceResult, SubmitResult
from forebay.system.message import Message

WINDOW = "2026-03-01"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            SourceResult(state="waiting", window=WINDOW, source="clicks"),
            {"state": "waiting", "window": WINDOW, "source": "clicks", "deadline": None}
            | {"reason": "", "fingerprint": "", "rows": None}
            | dict.fromkeys(("tasks", "files", "storage_calls", "windows_scanned"), 0),
        ),
        (
            SinkResult(window=WINDOW, generation=1, tasks=2, recorded=True),
            {"window": WINDOW, "generation": 1, "tasks": 2, "recorded": True}
            | {"rows": {}, "fingerprint": "", "notes": []},
        ),
        (
            SubmitResult(state="waiting", window=WINDOW, reason="the line is busy"),
            {"state": "waiting", "window": WINDOW, "reason": "the line is busy"}
            | {"job_id": "", "epoch": 0, "generation": 0, "warnings": []},
        ),
        (
            EvaluateResult(window=WINDOW, generation=1),
            {"window": WINDOW, "generation": 1, "rows_line": "", "warnings": [], "words": []}
            | {key: {} for key in ("rows", "label_not_known", "labels_not_known", "metrics")}
            | {"event": {}, "completed": {}},
        ),
    ],
)
def test_what_is_not_said_is_nothing(result: Message, told: dict[str, object]) -> None:
    assert result.model_dump() == told
