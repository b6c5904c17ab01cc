"""A chain as it will be: what becomes stale, what cannot be built, how long it takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import model_lines
from support.links import AT, link, window_of

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.projected_chain import ProjectedChain
from forebay.home.paths import Home
from forebay.mixture.row_sums import RowSums

START = datetime(2026, 3, 1, tzinfo=UTC)


def record(chain: ModelChain, window: str, parent: str, rows: int, seconds: float) -> None:
    """One more trained window of `rows` rows; its checkpoint is kept."""
    before = chain.newest(parent) if parent else None
    base = before.seen if before else {}
    seen = {"clicks": RowSums(rows=rows + (base["clicks"].rows if base else 0))}
    facts = {"base_seen": base, "seen": seen, "finished_at": AT + timedelta(seconds=seconds)}
    model_lines.record(chain, link(window, parent=(parent, 1) if parent else None, **facts))


def train(foreseen: ProjectedChain, window: str, generation: int) -> None:
    foreseen.train(window_of(window), generation)


@pytest.fixture
def chain(tmp_path: Path) -> ModelChain:
    """Windows 02 to 04, of 100, 100 and 400 rows."""
    chain = ModelChain(Home(tmp_path), "ads")
    record(chain, "2026-03-02", "", 100, 2.0)
    record(chain, "2026-03-03", "2026-03-02", 100, 2.0)
    record(chain, "2026-03-04", "2026-03-03", 400, 8.0)
    return chain


def test_nothing_is_written(chain: ModelChain) -> None:
    train(ProjectedChain(chain), "2026-03-05", 1)
    assert chain.windows()[-1] == "2026-03-04"


def test_later_windows_go_stale(chain: ModelChain) -> None:
    foreseen = ProjectedChain(chain)
    assert foreseen.stale() == []
    train(foreseen, "2026-03-03", 2)
    assert foreseen.stale() == ["2026-03-04"]
    train(foreseen, "2026-03-04", 2)
    assert foreseen.stale() == []


def test_a_window_before_the_line_makes_all_of_it_stale(chain: ModelChain) -> None:
    foreseen = ProjectedChain(chain)
    train(foreseen, "2026-03-01", 1)
    assert foreseen.stale() == ["2026-03-02", "2026-03-03", "2026-03-04"]
    assert foreseen.not_kept() == []


def test_a_checkpoint_that_is_not_kept(chain: ModelChain) -> None:
    foreseen = ProjectedChain(chain)
    train(foreseen, "2026-03-04", 2)
    train(foreseen, "2026-03-05", 1)
    (why,) = foreseen.not_kept()
    assert why.startswith("window 2026-03-03 cannot be built on")
