"""Staleness by query, against the walk from link to link that defines it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from support.model_lines import plan_empty
from support.undone import before, newest, train, undone

from forebay.config.specs.windows import order_of
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.rows import line_rows, link_rows
from forebay.executors.model_line.staleness import stale_reason, stale_reasons
from forebay.home.database.base import Database
from forebay.home.paths import Home

WARM = "2026-02-01_2026-03-01"
KEYS = [WARM, "2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
GENERATIONS = 3
# Which windows are trained, one after the other: each begins at the newest link before it.
trainings = st.lists(st.integers(0, len(KEYS) - 1), max_size=9).filter(
    lambda numbers: all(numbers.count(each) <= GENERATIONS for each in numbers)
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    ledger = Ledger(Home(tmp_path_factory.mktemp("home")), "ads")
    for key in KEYS:
        for generation in range(1, GENERATIONS + 1):
            plan_empty(ledger, key, generation)
    return ledger.database


def walked(trained: list[Link], one: Link) -> str | None:
    """From a link to its parent, to that one's parent, until one is not built on the newest."""
    current: Link | None = one
    while current is not None:
        parent, last = current.parent, before(trained, current)
        if last is not None and (parent is None or parent.window != last.window):
            return f"stale (built before {last.window} was trained)"
        if parent is None:
            return None
        if last is not None and last.name != parent:
            return f"stale (built on generation {parent.generation} of {parent.window})"
        current = next(each for each in trained if each.name == parent)
    return None


@settings(max_examples=150)
@given(trainings)
def test_the_query_answers_as_the_walk(database: Database, numbers: list[int]) -> None:
    def work(rows: Connection) -> None:
        line = line_rows.locked_line(rows, "ads", "main")
        trained: list[Link] = []
        for number in numbers:
            train(rows, line, trained, KEYS[number])
        assert link_rows.all_links(rows, line) == sorted(
            trained, key=lambda each: (order_of(each), each.generation)
        )
        for each in trained:
            assert stale_reason(rows, line, each) == walked(trained, each)
        heads = [head for key in KEYS if (head := newest(trained, key)) is not None]
        reasons = {each.window: walked(trained, each) for each in heads}
        assert stale_reasons(rows, line) == {key: why for key, why in reasons.items() if why}

    undone(database, work)
