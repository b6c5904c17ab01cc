"""The timer and sink stages: generations, clearing one of them, two sinks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.links import judgement
from support.model_lines import export, mark_trained
from support.stages import Stages, let_count, memory_source, noon, pipeline, stages, table
from support.there import there

from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan_rows import WindowState
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import FencedError, UsageError
from forebay.executors.stages.plan import time_window
from forebay.executors.stages.results import SinkResult, TimerResult

KEY = "2026-03-01"


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path, ("a", "b")) as each:
        MEMORY["a"] = table([noon(number) for number in range(9)])
        MEMORY["b"] = table([noon(number) for number in range(9) for _ in range(2)])
        yield each


def list_all(found: Stages, by: str = "r#0", number: int = 0) -> None:
    for name in found.sources:
        found.source(number, name, by)


def planned(found: Stages) -> SinkResult:
    list_all(found)
    return found.sink(0)


def train(found: Stages, generation: int = 1) -> None:
    mark_trained(found.ledger, KEY, generation)


def timer(found: Stages, *, again: bool = False) -> TimerResult:
    return time_window(found.target(0), again=again)


def kept(found: Stages) -> dict[str, set[str]]:
    return Listings(found.ledger).windows()


def test_the_timer_says_how_a_window_stands(found: Stages) -> None:
    assert timer(found).state == "open"
    planned(found)
    assert timer(found).reason == "it is planned as generation 1, but not trained"
    train(found)
    trained = timer(found)
    assert (trained.state, trained.generation) == ("trained", 1)
    assert "clear this run" in trained.next
    again = timer(found, again=True)
    assert (again.state, again.generation) == ("open", 1)


def test_a_trained_window_is_not_done_before_it_is_judged(found: Stages) -> None:
    planned(found)
    train(found)
    chain = found.target(0).chain
    link = there(chain.newest(KEY))
    export(chain, link)
    assert timer(found).reason == "already trained in generation 1, but it has not been judged yet"
    wrong = {"rows_agree": False, "rows_line": "rows DISAGREE in window 1"}
    chain.judge(link, judgement(link, **wrong))
    told = timer(found)
    assert told.state == "open"
    assert told.reason == "already trained in generation 1, but rows DISAGREE in window 1"
    chain.judge(link, judgement(link, rows_agree=True))
    assert timer(found).state == "trained"


def test_a_window_that_is_stale_is_said_to_be(found: Stages) -> None:
    for number in (0, 1):
        list_all(found, number=number)
        found.sink(number)
        mark_trained(found.ledger, found.window(number).key, 1)
    late = time_window(found.target(1), again=False)
    stale = f"stale (built before {KEY} was trained)"
    assert (late.state, late.reason) == ("trained", f"already trained in generation 1, but {stale}")


def test_a_newer_generation_that_is_not_trained_is_open(found: Stages) -> None:
    planned(found)
    train(found)
    MEMORY["a"] = table([noon(0)] * 5)
    list_all(found, "r#1")
    assert found.sink(0, "r#1", again=True).generation == 2
    assert timer(found).state == "trained", "it is only proposed"
    let_count(found.ledger, KEY, 2)
    assert timer(found).state == "open"


def test_a_trained_window_needs_no_listings(found: Stages) -> None:
    planned(found)
    train(found)
    found.source(1, "a", "r1#0", [(0, "r#0")])
    assert kept(found) == {KEY: {"a"}, "2026-03-02": {"a"}}
    timer(found)
    assert kept(found) == {"2026-03-02": {"a"}}


def test_a_sink_records_and_drops_what_was_listed(found: Stages) -> None:
    sunk = planned(found)
    assert (sunk.generation, sunk.tasks, sunk.rows) == (1, 2, {"a": 1, "b": 2})
    assert (sunk.recorded, sunk.notes) == (True, [])
    assert (found.ledger.windows(), kept(found)) == ([KEY], {})
    assert [entry["event"] for entry in found.ledger.history(KEY)] == ["planned"]


def test_the_same_data_again_keeps_the_plan(found: Stages) -> None:
    """Its submission makes the generation: a sink that is cleared alone leaves nothing undone."""
    first = planned(found)
    train(found)
    for again in (False, True):
        list_all(found, f"r#{again}")
        kept = found.sink(0, f"r#{again}", again=again)
        assert kept == first.model_copy(update={"recorded": False})
        assert found.sink(0, f"r#{again}", again=again) == kept, "a retry"
        last = found.ledger.history(KEY)[-1]
        assert (last["event"], last["asked_by"]) == ("plan kept", f"r#{again}")
    assert timer(found).state == "trained"


def test_changed_data(found: Stages) -> None:
    planned(found)
    MEMORY["a"] = table([noon(0)] * 5)
    list_all(found, "r#1")
    assert found.sink(0, "r#1").generation == 2
    train(found, 2)
    MEMORY["a"] = table([noon(0)] * 7)
    list_all(found, "r#2")
    held = found.sink(0, "r#2")
    assert (held.generation, held.recorded, held.rows["a"]) == (2, False, 5)
    assert "its data has changed since it was trained" in held.notes[0]
    list_all(found, "r#3")
    assert found.sink(0, "r#3", again=True).rows["a"] == 7


def test_one_cleared_source_meets_the_recorded_part_of_the_other(found: Stages) -> None:
    planned(found)
    MEMORY["a"] = table([noon(0)] * 5)
    found.source(0, "a", "r#1")
    sunk = found.sink(0, "r#1")
    assert (sunk.generation, sunk.rows) == (2, {"a": 5, "b": 2})
    tasks, before = found.ledger.tasks(KEY, 2), found.ledger.tasks(KEY, 1)
    assert tasks.schema == before.schema
    assert tasks.slice(1).equals(before.slice(1)), "b's tasks are the same"


def test_a_source_that_is_not_listed(found: Stages) -> None:
    found.source(0, "a")
    with pytest.raises(UsageError, match="source 'b' was not listed"):
        found.sink(0)
    found.source(0, "b")
    moved = {"streams": {"a": {"sources": ["a"]}, "b": {"sources": ["b"], "offset": "24h"}}}
    found.pipeline = pipeline(["a", "b"], dataset=moved)
    with pytest.raises(UsageError, match="'b' was not listed by this run under its current"):
        found.sink(0)


def test_what_another_declaration_or_run_has_listed_is_no_answer(found: Stages) -> None:
    """The window would be green with the rows of a folder that nobody declares any more."""
    list_all(found, "r1#0")
    with pytest.raises(UsageError, match="source 'a' was not listed by this run"):
        found.sink(0, "r2#0")
    MEMORY["moved"] = table([noon(0), noon(0), noon(0)])
    found.sources["a"] = memory_source("a", options={"table": "moved"})
    with pytest.raises(UsageError, match="source 'a' was not listed by this run"):
        found.sink(0, "r1#0")
    assert found.source(0, "a", by="r1#0").rows == 3, "whoever asked"
    assert found.sink(0, "r1#0").rows["a"] == 3


def test_two_sinks_at_a_time(found: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(found)
    list_all(found, "r#1")
    with monkeypatch.context() as patch:
        unplanned = WindowState(None, is_trained=False, next_generation=1)
        patch.setattr(Ledger, "state", lambda self, window: unplanned)
        with pytest.raises(FencedError, match="at the same time"):
            found.sink(0, "r#1")
    assert found.sink(0, "r#1").generation == 1, "the retry"


def test_listings_of_windows_trained_since_do_not_pile_up(found: Stages) -> None:
    planned(found)
    found.source(1, "a", "r1#0", [(0, "r#0")])  # it was asked for a moment too long
    train(found)
    assert KEY in kept(found)
    list_all(found, "r1#0", 1)
    found.sink(1, "r1#0")
    assert kept(found) == {}


def test_a_listing_made_since_the_training_stays(found: Stages) -> None:
    planned(found)
    train(found)
    found.source(0, "a", "r#1")
    list_all(found, "r1#0", 1)
    found.sink(1, "r1#0")
    assert kept(found) == {KEY: {"a"}}


def test_a_warm_start_not_listed_as_declared_is_not_recorded(tmp_path: Path) -> None:
    with stages(tmp_path, ("a", "b")) as found:
        MEMORY["a"] = MEMORY["b"] = table([noon(-3), noon(0)])
        found.source(0, "b")
        found.pipeline = pipeline(["a", "b"], train={"warm_start": "2026-02-20"})
        found.source(0, "a")
        assert found.sink(0).rows == {"a": 1, "b": 1}
        assert found.ledger.windows() == [KEY], "b has not listed it"
        list_all(found, "r#1")
        found.sources["b"] = memory_source("b", starts="2026-02-25T00:00:00Z")
        found.sink(0, "r#1")
        assert found.ledger.windows() == [KEY], "b has listed other days of it"
        list_all(found, "r#2")
        found.sink(0, "r#2")
        assert found.ledger.windows() == [f"2026-02-20_{KEY}", KEY]
