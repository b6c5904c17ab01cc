"""A line's warnings: from its judgements, with labels that came after them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.minibatches import labelled
from support.model_lines import record_link
from support.stages import pipeline

from forebay.config.pipelines import PipelineSpec
from forebay.executors.evaluation import line_warnings as module
from forebay.executors.evaluation.line_warnings import line_warnings
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.scores import ScoreWriter
from forebay.home.format import record_format
from forebay.home.paths import Home
from forebay.home.store import store_of

KEYS = [f"2026-03-0{day}" for day in range(1, 4)]
ROWS = 40
SOURCES = {
    "a": {"feed": "batch", "trained_rows": ROWS},
    "ab": {"feed": "stream", "trained_rows": ROWS},
}


def spec() -> PipelineSpec:
    streams = {"a": {"sources": ["a"], "offset": "24h"}, "ab": {"sources": ["ab"]}}
    return pipeline(("a", "ab"), dataset={"streams": streams})


@pytest.fixture
def chain(tmp_path: Path) -> ModelChain:
    """Windows whose stream knows no positive; all are, say the batch rows of the next window."""
    record_format(Home(tmp_path))
    chain = ModelChain(Home(tmp_path), "ads")
    for number, key in enumerate(KEYS):
        writer = ScoreWriter(tmp_path / key, ("mixture",))
        own = [number * ROWS + row for row in range(ROWS)]
        scores = np.full((ROWS, 1), 0.5, np.float32)
        writer.append(labelled("stream", own, [0] * ROWS), scores)
        before = [event - ROWS for event in own] if number else []
        writer.append(labelled("batch", before, [1] * len(before)), None)
        writer.seal()
        stored = store_of(chain.home).put_tree("models", "scores", tmp_path / key)
        link = record_link(chain, key, {"a": ROWS}, files={"scores": stored})
        chain.judge(link, {"sources": SOURCES, "metrics": {}, "label_completeness": None})
    return chain


def test_labels_that_came_after_the_judgement_count(chain: ModelChain) -> None:
    (warning,) = line_warnings(spec(), chain)
    assert warning.startswith("0% (0%-8%) of 40 positives are known when the stream row is")


def test_what_judgements_say_counts_too(chain: ModelChain) -> None:
    facts = {"sources": SOURCES, "metrics": {}}
    counts = {"fresh_positives": 2000, "complete_positives": 2000}
    chain.judge(chain.last()[0], facts | {"label_completeness": counts})
    assert line_warnings(spec(), chain) == []


def test_a_line_that_has_trained_nothing_warns_of_nothing(chain: ModelChain) -> None:
    assert line_warnings(spec(), ModelChain(chain.home, "ads", "other")) == []


def test_many_rows_are_not_joined_for_a_warning(
    chain: ModelChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOINED_ROWS_MAX", 1)
    assert line_warnings(spec(), chain) == []


def test_scores_that_are_damaged_are_said_and_stop_nothing(chain: ModelChain) -> None:
    stored = chain.last(3)[0].files["scores"]
    folder = store_of(chain.home).tree(stored)
    for file in folder.rglob("*.arrow"):
        file.chmod(0o600)
        file.write_bytes(b"nothing")
    (warning,) = line_warnings(spec(), chain)
    assert warning.startswith("whether its labels come late is not known: window 2026-03-01: ")
