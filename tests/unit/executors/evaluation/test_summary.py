"""The summary of trained windows: counts from three places, and what it says of each window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jobs import ToldJob
from support.links import judgement, window_of
from support.model_lines import export, record_link
from support.stages import pipeline
from support.task_tables import record_tasks
from support.there import there

from forebay.config.load import Project
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import ConfigError, RowsLostError, UsageError
from forebay.executors.evaluation.range_summary import summarise_windows
from forebay.executors.evaluation.run_summary import RunFacts
from forebay.executors.evaluation.summary import rows_verdict
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import Link, Parent, ReadRows
from forebay.executors.stages.evaluate import _by_name, evaluate_window
from forebay.executors.stages.target import StageTarget
from forebay.home.paths import Home
from forebay.mixture.metrics.figures import EventScores

WARM, FIRST, SECOND = "2026-02-01_2026-03-01", "2026-03-01", "2026-03-02"
DAY = timedelta(days=1)
START = datetime(2026, 3, 1, tzinfo=UTC)
COUNTS = st.integers(0, 2)


@given(COUNTS | st.none(), COUNTS, COUNTS, COUNTS)
def test_counts_agree(planned: int | None, served: int, trained: int, dead: int) -> None:
    agree = served == trained + dead and (planned is None or planned == served)
    assert told("1", planned, served, trained, dead).sources["a"].agree is agree


def told(window: str, *counts: int | None, **more: Any) -> Judgement:
    names = ("planned_rows", "served_rows", "trained_rows", "dead_letter_rows")
    own = dict(zip(names, counts, strict=True))
    return judgement(window=window, sources={"a": own | more})


def test_the_line_of_a_run_adds_up_all_windows() -> None:
    agree, line = rows_verdict([told("1", 1200, 1200, 1100, 100), told("2", 30, 30, 28, 2)])
    assert agree
    assert line.endswith("(1,230 = 1,230 = 1,128 + 102)")
    assert rows_verdict([])[1].endswith("(0 = 0 = 0 + 0)")
    agree, line = rows_verdict([told("1", None, 7, 7, 0), told("2", 1, 1, 0, 1)])
    assert agree
    assert "(8 = 8 = 7 + 1); 1 plan could not count rows in advance" in line


def test_the_first_disagreement_is_named() -> None:
    windows = [told("1", 1, 1, 1, 0), told("2", 5, 4, 3, 1), told("3", 9, 1, 1, 0)]
    agree, line = rows_verdict(windows)
    assert not agree
    assert "window 2, source a: planned 5, served 4, trained 3, dead 1" in line


def test_each_planned_offset_has_to_be_read() -> None:
    read = {"records": 5, "control": 2, "aborted": 3, "compacted": 1}
    window = told("1", None, 50, 49, 1, planned_offsets=11, read_offsets=read)
    agree, line = rows_verdict([window])
    assert agree
    assert line.endswith("11 planned offsets = 5 records + 2 control + 3 aborted + 1 compacted")
    fewer = read | {"records": 4}
    window = told("1", None, 50, 49, 1, planned_offsets=11, read_offsets=fewer)
    agree, line = rows_verdict([window])
    assert not agree
    assert "window 1, source a" in line
    assert "11 planned offsets, but 10 were read: 4 records + 2 control" in line


def target(home: Home, line: str, key: str) -> StageTarget:
    window = SPEC.dataset.grid.parse(key)
    return StageTarget(Project(home.root, home.root, {}, {}, [], {}, {}), SPEC, home, line, window)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A line of two windows behind a warm start, over two sources."""
    home = Home(tmp_path)
    chain, ledger = ModelChain(home, "ads"), Ledger(home, "ads")
    for key, rows in ((WARM, (100, 7)), (FIRST, (10, 3)), (SECOND, (20, 4))):
        tasks, span = {"a": [(0, rows[0])], "ab": [(0, rows[1])]}, window_of(key)
        record_tasks(ledger, key, (span.start, span.end), tasks)
    record_link(chain, WARM, {"a": 100, "ab": 7})
    record_link(chain, FIRST, {"a": 10, "ab": 3}, parent=WARM)
    record_link(
        chain,
        SECOND,
        {"a": 20, "ab": 4},
        parent=FIRST,
        resumed_from_step=2,
        resumed_from_runtime="host-1:/home",
    )
    return home


def newest(home: Home, window: str) -> Link:
    return there(ModelChain(home, "ads").newest(window))


SPEC = pipeline(("a", "ab"), model={"kind": "count"})
TOWERS = pipeline(("a", "ab"))


def test_a_range_is_told_with_the_line_s_warm_start(home: Home) -> None:
    facts = RunFacts(restarts={"data": 1})
    found = summarise_windows(SPEC, ModelChain(home, "ads"), [FIRST, SECOND], facts)
    assert [each.window for each in found.windows] == [FIRST, SECOND]
    assert found.warm_start.window == WARM
    assert found.rows_agree
    assert found.rows_line.endswith("(144 = 144 = 144 + 0)")
    assert {name: sums.rows for name, sums in found.seen.items()} == {"a": 130, "ab": 14}
    assert (found.paradigms, found.model, found.line) == ([], "", "main")
    assert (found.stale_windows, found.published) == ([], None)
    assert found.restarts == {"data": 1}
    second = found.windows[1]
    assert second.sources["a"].trained_rows == 20
    assert second.sources["ab"].served_rows == 4
    assert second.parent == Parent(window=FIRST, generation=1)
    assert (second.resumed_from_step, second.steps, second.stale) == (2, 10, None)
    assert second.resumed_from_runtime == "host-1:/home"
    assert found.warm_start.parent is None


def test_the_model_of_the_last_window_is_named_when_it_is_there(home: Home) -> None:
    chain = ModelChain(home, "ads")
    export(chain, newest(home, FIRST))
    assert summarise_windows(SPEC, chain, [FIRST, SECOND], RunFacts()).model == ""
    model = export(chain, newest(home, SECOND))
    found = summarise_windows(TOWERS, chain, [FIRST, SECOND], RunFacts())
    assert (found.model, found.paradigms) == (model, ["mixture"])
    chain.publish(there(chain.newest(SECOND)), START)
    published = summarise_windows(SPEC, chain, [SECOND], RunFacts()).published
    assert (published.window, published.path) == (SECOND, model)


def test_a_line_without_a_warm_start_and_with_stale_windows(home: Home) -> None:
    chain = ModelChain(home, "ads", "other")
    record_link(chain, FIRST, {"a": 10, "ab": 3})
    record_link(chain, SECOND, {"a": 20, "ab": 4}, parent=FIRST)
    found = summarise_windows(SPEC, chain, [FIRST])
    assert (found.warm_start, found.stale_windows) == (None, [])
    assert found.reused_windows == [FIRST], "as the folders of its jobs tell: there are none"
    assert found.rows_line.endswith("(13 = 13 = 13 + 0)")
    span = (START, START + DAY)
    record_tasks(Ledger(home, "ads"), FIRST, span, {"a": [(0, 10)], "ab": [(0, 3)]}, 2)
    record_link(chain, FIRST, {"a": 10, "ab": 3}, generation=2)
    found = summarise_windows(SPEC, chain, [FIRST, SECOND], RunFacts())
    assert found.stale_windows == [SECOND]
    assert [each.generation for each in found.windows] == [2, 1]
    with pytest.raises(ConfigError, match="window 2026-03-03 of pipeline 'ads' is not trained"):
        summarise_windows(SPEC, chain, [FIRST, "2026-03-03"], RunFacts())


def test_without_facts_the_folders_of_the_jobs_tell(home: Home) -> None:
    restarts = {"supervisor": 0, "driver": 2, "data": 1, "trainer": 0}
    for name in ("one", "two"):
        job = ToldJob(home, name)  # each trained the first window
        job.tell("succeeded", restarts=restarts)
        job.progress(phases_seconds={"steps": 1.23456})
    ToldJob(home, "three")  # it was submitted, and no more
    found = summarise_windows(SPEC, ModelChain(home, "ads"), [FIRST])
    assert found.restarts == {"supervisor": 0, "driver": 4, "data": 2, "trainer": 0}
    assert found.phases_seconds == {"trainer.steps": 2.469}
    assert (found.reused_windows, found.trained_windows) == ([FIRST], [])
    found = summarise_windows(SPEC, ModelChain(home, "ads"), [SECOND])
    assert (found.restarts, found.phases_seconds) == ({}, {})
    ToldJob(home, "four").tell("running", restarts=restarts)
    found = summarise_windows(SPEC, ModelChain(home, "ads"), [FIRST])
    assert (found.restarts["driver"], found.phases_seconds) == (6, {"trainer.steps": 2.469})


def test_advice_is_given_on_what_learns(home: Home) -> None:
    chain = ModelChain(home, "ads")
    assert summarise_windows(SPEC, chain, [FIRST], RunFacts()).advice is None
    advice = summarise_windows(TOWERS, chain, [FIRST], RunFacts()).advice
    assert (advice.declared, advice.label_completeness) == ("mixture", None)
    assert advice.words.startswith("label completeness is unknown")


def test_no_windows_are_no_rows_and_no_model(home: Home) -> None:
    found = summarise_windows(SPEC, ModelChain(home, "empty"), [], RunFacts())
    assert (found.windows, found.seen, found.model) == ([], {}, "")
    assert found.rows_line.endswith("(0 = 0 = 0 + 0)")


def test_one_window_is_judged_with_the_warm_start_it_was_built_on(home: Home) -> None:
    first = evaluate_window(target(home, "main", FIRST))
    assert first.rows == {"a": 10, "ab": 3}
    assert first.rows_line.endswith("(120 = 120 = 120 + 0)")
    judged = there(ModelChain(home, "ads").judgement(newest(home, FIRST)))
    assert (judged.rows_agree, judged.rows_line) == (True, first.rows_line)
    assert judged.series is None
    assert first.warnings == []
    assert evaluate_window(target(home, "main", SECOND)).rows_line.endswith("(24 = 24 = 24 + 0)")
    with pytest.raises(UsageError, match="is not trained on line 'main'"):
        evaluate_window(target(home, "main", "2026-03-03"))


def test_lost_rows_are_an_error_after_the_judgement_is_stored(home: Home) -> None:
    chain = ModelChain(home, "ads", "lost")
    lost = {"a": ReadRows(rows=9), "ab": ReadRows(rows=3, dead=1)}
    link = record_link(chain, FIRST, {"a": 10, "ab": 2}, read=lost)
    with pytest.raises(RowsLostError, match="source a: planned 10, served 9, trained 10, dead 0"):
        evaluate_window(target(home, "lost", FIRST))
    assert not there(chain.judgement(link)).rows_agree


def test_only_single_numbers_are_figures() -> None:
    found = EventScores(auc=0.5, auc_interval=(0.4, 0.6), calibration=float("nan"), rows=3)
    wanted = {"auc": 0.5, "rows": 3.0, "positives": 0.0, "seeds": 1.0}
    assert _by_name({"mixture": found}) == {"mixture": wanted}
