"""A line's warnings come from the judgements of its last windows."""

from __future__ import annotations

import pytest
from support.links import judgement
from support.model_lines import record_link
from support.stages import pipeline

from forebay.executors.advice import line as module
from forebay.executors.advice.line import line_warnings
from forebay.executors.model_line.chain import ModelChain

SPEC = pipeline(("a", "ab"))
SOURCES = {"a": {"feed": "batch", "trained_rows": 9}, "ab": {"feed": "stream", "trained_rows": 9}}


def judged(chain: ModelChain, key: str, fresh: int, complete: int) -> None:
    link = record_link(chain, key, {"a": 9})
    counts = {"fresh_positives": fresh, "complete_positives": complete}
    chain.judge(link, judgement(link, sources=SOURCES, label_completeness=counts))


def test_windows_of_a_line_are_added_up(chain: ModelChain) -> None:
    assert line_warnings(SPEC, chain) == []
    judged(chain, "2026-03-01", 30, 60)
    judged(chain, "2026-03-02", 0, 0)  # its labels are still to come
    record_link(chain, "2026-03-03", {"a": 9})  # nobody has judged it
    (warning,) = line_warnings(SPEC, chain)
    assert warning.startswith("50% (37%-62%) of 60 positives are known when the stream row is")
    judged(chain, "2026-03-04", 990, 1000)
    assert line_warnings(SPEC, chain) == []


def test_only_the_last_windows_count(chain: ModelChain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOWS_MAX", 1)
    for day in range(1, 4):
        judged(chain, f"2026-03-0{day}", 90 if day == 1 else 100, 100)
    judged(chain, "2026-03-04", 85, 100)
    (warning,) = line_warnings(SPEC, chain) or [""]
    kept = SPEC.dataset.label_horizon + 1
    assert (kept, warning) == (2, "")
    judged(chain, "2026-03-05", 85, 100)
    assert line_warnings(SPEC, chain)[0].startswith("85% ")
