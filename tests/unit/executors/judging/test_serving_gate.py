"""What the gate of a line reads before a model is exported."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.judged import Event, write_judged
from support.links import window_of
from support.model_lines import export, record_link
from support.stages import pipeline
from support.there import there

from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.judging import serving_gate
from forebay.executors.judging.gate import GateDecision, gate_decision
from forebay.executors.judging.serving_gate import choose_variant
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import Segments
from forebay.home.store.open import store_of
from forebay.system.instants import to_us

KEYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
ROWS = 200
SEEDS = 3  # with fewer of them no window is enough
COLUMNS = tuple(f"{name}{seed}" for name in ("mixture", "stream") for seed in ("", "@1", "@2"))


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
        best, other = (right,) * SEEDS, (half,) * SEEDS
        scores[one] = best + other if better == "mixture" else other + best
    write_judged(folder / KEYS[day], COLUMNS, rows, scores)
    stored = store_of(chain.home).put_tree("models", "scores", folder / KEYS[day])
    before = KEYS[day - 1] if day else None
    return record_link(chain, KEYS[day], {"a": 2}, parent=before, files={"scores": stored})


def decided(pipeline: PipelineSpec, chain: ModelChain, link: Link) -> GateDecision:
    return there(choose_variant(pipeline, chain, link)).decision


def keep_evidence(chain: ModelChain, link: Link) -> Link:
    """As an export does."""
    content = there(choose_variant(spec(), chain, link)).evidence.model_dump_json().encode()
    return chain.add_file(link, "evidence", store_of(chain.home).put("models", "evidence", content))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Windows whose scores were read."""
    found: list[str] = []

    class Opened(Segments):
        def judged(self) -> pa.Table | None:
            found.append(self.window)
            return super().judged()

    monkeypatch.setattr(serving_gate, "Segments", Opened)
    return found


def test_the_newest_windows_of_the_line_decide(chain: ModelChain, tmp_path: Path) -> None:
    first = train(chain, tmp_path, 0, "stream")
    found = decided(spec(), chain, first)
    assert (found.variant, found.windows, found.rows) == ("stream", [KEYS[0]], ROWS)
    second = train(chain, tmp_path, 1, "mixture")
    found = decided(spec(), chain, second)
    assert (found.variant, found.windows, found.rows) == ("mixture", KEYS[:2], 2 * ROWS)
    assert decided(spec(min_rows=2 * ROWS + 1), chain, second).windows == []
    again = decided(spec(), chain, first)
    assert again.windows == [KEYS[0]], "later windows say nothing of an earlier one"


def test_without_a_gate_nothing_is_chosen(chain: ModelChain, tmp_path: Path) -> None:
    link = train(chain, tmp_path, 0, "stream")
    assert choose_variant(spec(when="always"), chain, link) is None
    assert gate_decision(chain, link) is None


def test_what_serves_stays_where_it_is_the_measure(chain: ModelChain, tmp_path: Path) -> None:
    first = train(chain, tmp_path, 0, "stream")
    decision = decided(spec(), chain, first)
    stored = store_of(chain.home).put("models", "gate", decision.model_dump_json().encode())
    first = chain.add_file(first, "gate", stored)
    assert gate_decision(chain, first) == decision
    export(chain, first)
    assert chain.publish(first, datetime(2026, 3, 5, tzinfo=UTC)) == ""
    second, few = train(chain, tmp_path, 1, "stream"), {"min_rows": 10 * ROWS}
    kept = decided(spec(against="served", **few), chain, second)
    assert (kept.variant, decided(spec(**few), chain, second).variant) == ("stream", "mixture")
    export(chain, second)  # as if without a gate
    chain.serve(second.model, "serve", datetime(2026, 3, 6, tzinfo=UTC))
    third = train(chain, tmp_path, 2, "stream")
    found = decided(spec(against="served", **few), chain, third)
    assert found.variant == "stream", "the newest decision counts, not what a pin serves"
    other = decision.model_copy(update={"variant": "mixture"}).model_dump_json().encode()
    chain.add_file(third, "gate", store_of(chain.home).put("models", "gate", other))
    again = decided(spec(against="served", **few), chain, second)
    assert again.variant == "stream", "of a reprocessed window what was decided before it counts"


def test_a_gate_reads_its_own_window(chain: ModelChain, tmp_path: Path, opened: list[str]) -> None:
    wanted = spec(min_rows=3 * ROWS)
    links = [train(chain, tmp_path, day, "mixture") for day in range(2)]
    keep_evidence(chain, links[1])
    assert opened == KEYS[:2], "nothing was known before"
    opened.clear()
    found = decided(wanted, chain, train(chain, tmp_path, 2, "stream"))
    assert (opened, found.windows, found.rows) == (KEYS[2:], KEYS, 3 * ROWS)


def test_evidence_of_an_earlier_link_will_do(
    chain: ModelChain, tmp_path: Path, opened: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    keep_evidence(chain, train(chain, tmp_path, 0, "mixture"))
    second = train(chain, tmp_path, 1, "mixture")
    chain.add_file(second, "evidence", store_of(chain.home).put("models", "evidence", b"{}"))
    opened.clear()
    third = train(chain, tmp_path, 2, "mixture")
    found = decided(spec(min_rows=3 * ROWS), chain, third)
    assert (opened, found.windows) == (KEYS[1:], KEYS)
    assert "the gate's evidence of windows before 2026-03-03 cannot be read" in caplog.text


def test_what_serves_cannot_be_read(
    chain: ModelChain, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = train(chain, tmp_path, 0, "mixture")
    lost = store_of(chain.home).put("models", "gate", b"lost")
    store_of(chain.home).remove([lost.name])
    chain.add_file(first, "gate", lost)
    found = decided(spec(against="served"), chain, train(chain, tmp_path, 1, "mixture"))
    assert found.variant == "mixture"
    assert found.words.endswith("; the decision of window 2026-03-01 cannot be read")
    assert "what the gate decided last cannot be read; it begins as declared" in caplog.text


def test_evidence_that_is_damaged_is_gathered_anew(
    chain: ModelChain, tmp_path: Path, opened: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    first = train(chain, tmp_path, 0, "mixture")
    chain.add_file(first, "evidence", store_of(chain.home).put("models", "evidence", b"{}"))
    found = decided(spec(min_rows=2 * ROWS), chain, train(chain, tmp_path, 1, "mixture"))
    assert (opened, found.windows) == (KEYS[:2], KEYS[:2])
    assert "the gate's evidence of windows before 2026-03-02 cannot be read" in caplog.text
