"""From plans to a job's windows, and the mark that a dead job left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.model_lines import record_link
from support.stages import DAY, START, noon, stages, table
from support.task_tables import record_tasks

from forebay.config.windows import warm_start_window
from forebay.datatasks.ledger import Ledger
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.stages.training_windows import is_linked, window_request
from forebay.executors.stages.warm_start import warm_start_plan
from forebay.home.paths import Home

SPAN = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
KEY = "2026-03-01"


def test_a_plan_becomes_a_job_s_window(tmp_path: Path) -> None:
    ledger = Ledger(Home(tmp_path), "ads")
    plan = record_tasks(ledger, KEY, SPAN, {"a": [(0, 1)]}, generation=3)
    asked = window_request(plan)
    assert (asked.key, asked.generation, asked.start, asked.end) == (KEY, 3, *SPAN)
    assert not asked.warm_start
    warm = plan.model_copy(update={"window": "2026-02-01_2026-03-01"})
    assert window_request(warm).warm_start


@pytest.mark.parametrize(("marked", "noted"), [(None, True), (1, True), (2, False), (3, False)])
def test_a_link_without_its_mark_is_marked(tmp_path: Path, marked: int | None, noted: bool) -> None:
    ledger, chain = Ledger(Home(tmp_path), "ads"), ModelChain(Home(tmp_path), "ads")
    for generation in (1, 2, 3):
        record_tasks(ledger, KEY, SPAN, {"a": [(0, 1)]}, generation=generation)
    if marked is not None:
        ledger.mark_trained(KEY, marked, {})
    assert not is_linked(ledger, chain, KEY, 2)
    assert ledger.trained(KEY) == marked
    before = len(ledger.history())
    record_link(chain, KEY, {"a": 1}, generation=2)
    assert is_linked(ledger, chain, KEY, 2)
    assert ledger.trained(KEY) == max(2, marked or 0)
    assert (len(ledger.history()) > before) is noted


def test_a_first_and_only_generation_is_marked_too(tmp_path: Path) -> None:
    ledger, chain = Ledger(Home(tmp_path), "ads"), ModelChain(Home(tmp_path), "ads")
    record_tasks(ledger, KEY, SPAN, {"a": [(0, 1)]})
    record_link(chain, KEY, {"a": 1})
    assert is_linked(ledger, chain, KEY, 1)
    assert ledger.trained(KEY) == 1


def test_a_warm_start_is_planned_once(tmp_path: Path) -> None:
    with stages(tmp_path) as found:
        MEMORY["a"] = table([noon(0), noon(1)])
        warm = warm_start_window(START, found.window(2))
        plan = warm_start_plan(found.project, found.pipeline, found.ledger, warm)
        assert (plan.window, plan.generation, plan.sources["a"].rows) == (warm.key, 1, 2)
        MEMORY["a"] = table([noon(0)])
        again = warm_start_plan(found.project, found.pipeline, found.ledger, warm)
        assert again == plan
        assert again.end - again.start == timedelta(days=2) == 2 * DAY
