"""What the gate of a line reads before a model is exported."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.judged import Event, write_judged
from support.links import window_of
from support.model_lines import export, record_link
from support.stages import pipeline

from forebay.config.pipelines import PipelineSpec
from forebay.executors.judging.gate_decision import gate_decision
from forebay.executors.judging.serving_gate import choose_variant
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.format import record_format
from forebay.home.paths import Home
from forebay.home.store import store_of
from forebay.system.instants import to_us

KEYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
ROWS = 200
COLUMNS = ("mixture", "stream")


def spec(**publish: Any) -> PipelineSpec:
    job = {"publish": {"when": "gate", "min_rows": ROWS, **publish}}
    return pipeline(("a",), train={"compare": ["stream"]}, job=job, model={"kind": "towers"})


def train(chain: ModelChain, folder: Path, day: int, better: str) -> Link:
    """A window whose own rows are judged; one variant knows all labels, the other half of them."""
    start = to_us(window_of(KEYS[day]).start) / 3_600_000_000
    numbers = range(day * ROWS, (day + 1) * ROWS)
    rows: list[Event] = [(one, start + (one % ROWS) * 0.1, one % 2) for one in numbers]
    scores = {}
    for one, _, label in rows:
        right, half = 0.1 + 0.8 * label, 0.1 + 0.8 * (label if one % 4 < 2 else 1 - label)
        scores[one] = (right, half) if better == "mixture" else (half, right)
    write_judged(folder / KEYS[day], COLUMNS, rows, scores)
    stored = store_of(chain.home).put_tree("models", "scores", folder / KEYS[day])
    before = KEYS[day - 1] if day else None
    return record_link(chain, KEYS[day], {"a": 2}, parent=before, files={"scores": stored})


@pytest.fixture
def chain(tmp_path: Path) -> ModelChain:
    record_format(Home(tmp_path))
    return ModelChain(Home(tmp_path), "ads")


def test_the_newest_windows_of_the_line_decide(chain: ModelChain, tmp_path: Path) -> None:
    first = train(chain, tmp_path, 0, "mixture")
    found = choose_variant(spec(), chain, first)
    assert found is not None
    assert (found.variant, found.windows) == ("mixture", [KEYS[0]])
    second = train(chain, tmp_path, 1, "stream")
    found = choose_variant(spec(), chain, second)
    assert found is not None
    assert (found.variant, found.windows, found.rows) == ("stream", [KEYS[1]], ROWS)
    more = choose_variant(spec(min_rows=ROWS + 1), chain, second)
    assert more is not None
    assert more.windows == KEYS[:2]
    again = choose_variant(spec(), chain, first)
    assert again is not None
    assert again.windows == [KEYS[0]], "later windows say nothing of an earlier one"


def test_without_a_gate_nothing_is_chosen(chain: ModelChain, tmp_path: Path) -> None:
    link = train(chain, tmp_path, 0, "stream")
    assert choose_variant(spec(when="always"), chain, link) is None
    assert gate_decision(chain, link) is None


def test_what_serves_stays_where_it_is_the_measure(chain: ModelChain, tmp_path: Path) -> None:
    first = train(chain, tmp_path, 0, "stream")
    decided = choose_variant(spec(), chain, first)
    assert decided is not None
    stored = store_of(chain.home).put("models", "gate", decided.model_dump_json().encode())
    first = chain.add_file(first, "gate", stored)
    assert gate_decision(chain, first) == decided
    export(chain, first)
    assert chain.publish(first, datetime(2026, 3, 5, tzinfo=UTC)) == ""
    second = train(chain, tmp_path, 1, "stream")
    few = {"min_rows": 10 * ROWS}
    kept = choose_variant(spec(against="served", **few), chain, second)
    declared = choose_variant(spec(**few), chain, second)
    assert kept is not None
    assert declared is not None
    assert (kept.variant, declared.variant) == ("stream", "mixture")
