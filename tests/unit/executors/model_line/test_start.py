"""Where a line begins, what may come next, and what must not change."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from support.links import link, window_of
from support.model_lines import record_link
from support.stages import memory_source, pipeline
from support.task_tables import source_plan
from support.there import there

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import ConfigError, NotReadyError, RowsLostError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import ReadRows
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.model_line.start import (
    gap_before,
    overlap_with,
    require_agreement,
    require_compatible,
    require_heard,
    require_learnt,
    warm_start_notes,
    warm_start_of,
)

DAYS = WindowGrid(WindowSize.DAY)
SOURCES = {name: memory_source(name) for name in ("a", "b")}
FEATURES = {"n": {"encode": "hash", "buckets": 10}, "n_log": {"encode": "numeric", "column": "n"}}


def record(chain: ModelChain, *windows: str, fingerprint: str = "same") -> None:
    for window in windows:
        record_link(chain, window, {"a": 1}, model_fingerprint=fingerprint)


def gap(chain: ModelChain, first: str) -> str:
    return gap_before(chain, DAYS, window_of(first))


def spec(**train: Any) -> PipelineSpec:
    return pipeline(("a", "b"), train=train)


def warm(chain: ModelChain, start: str | None, first: str) -> str | None:
    found = warm_start_of(spec(warm_start=start), chain, DAYS.parse(first))
    return found.key if found else None


def test_a_new_line_begins_with_the_declared_history(chain: ModelChain) -> None:
    assert warm(chain, None, "2026-03-02") is None
    assert warm(chain, "2026-02-01", "2026-03-02") == "2026-02-01_2026-03-02"
    assert warm(chain, "2026-03-02", "2026-03-02") is None, "no history before the window"
    assert warm(chain, "2026-03-01", "2026-03-02") == "2026-03-01_2026-03-02"


def test_a_line_keeps_the_beginning_that_it_had(chain: ModelChain) -> None:
    record(chain, "2026-03-05")
    assert warm(chain, "2026-02-01", "2026-03-06") is None
    assert warm(chain, "2026-02-01", "2026-03-05") is None
    assert warm(chain, "2026-02-01", "2026-03-04") is None, "it began after this window"
    record(chain, "2026-02-01_2026-03-01")
    assert warm(chain, "2026-02-01", "2026-03-06") == "2026-02-01_2026-03-01"
    assert warm(chain, "2026-02-01", "2026-03-01") == "2026-02-01_2026-03-01"


def test_a_line_with_a_later_history_has_none_for_earlier_windows(chain: ModelChain) -> None:
    record(chain, "2026-03-02_2026-03-05")
    assert warm(chain, "2026-02-01", "2026-03-01") == "2026-02-01_2026-03-01", "nothing follows yet"
    record(chain, "2026-03-05")
    assert warm(chain, "2026-02-01", "2026-03-01") is None
    assert warm(chain, "2026-02-01", "2026-03-06") == "2026-03-02_2026-03-05"


@pytest.mark.parametrize("now", ["2026-02-01", "2026-02-20"])
def test_a_line_keeps_the_history_that_it_began_with(chain: ModelChain, now: str) -> None:
    """Another one beside it would be trained before the same windows: rows came twice."""
    record(chain, "2026-02-10_2026-03-01", "2026-03-01")
    found = DAYS.parse("2026-03-02")
    assert warm_start_of(spec(warm_start=now), chain, found) == window_of("2026-02-10_2026-03-01")
    (note,) = warm_start_notes(spec(warm_start=now), chain, found)
    assert f"train.warm_start is {now}T00:00Z now: line 'main' keeps" in note
    assert warm_start_notes(spec(warm_start="2026-02-10"), chain, found) == []
    assert warm_start_of(spec(), chain, found) == window_of("2026-02-10_2026-03-01")
    (note,) = warm_start_notes(spec(), chain, found)
    assert "train.warm_start is not declared now: line 'main' keeps the warm start" in note


def test_a_line_that_began_without_history_goes_on_without_it(chain: ModelChain) -> None:
    """Nobody would see otherwise that what was declared since is not trained."""
    first, later = DAYS.parse("2026-03-01"), DAYS.parse("2026-03-02")
    declared = spec(warm_start="2026-02-10")
    assert warm_start_notes(declared, chain, first) == [], "nothing is trained yet"
    record(chain, "2026-03-01")
    assert warm_start_of(declared, chain, later) is None
    (note,) = warm_start_notes(declared, chain, later)
    assert "line 'main' began without a warm start, and continues without one" in note
    assert warm_start_notes(spec(), chain, later) == []
    assert warm_start_notes(spec(warm_start="2026-03-02"), chain, later) == []


def test_the_next_window_has_to_follow(chain: ModelChain) -> None:
    assert gap(chain, "2026-03-07") == "", "a line may begin anywhere"
    record(chain, "2026-03-02", "2026-03-03")
    assert (gap(chain, "2026-03-01"), gap(chain, "2026-03-02")) == ("", "")
    assert gap(chain, "2026-03-03") == "", "again"
    assert gap(chain, "2026-03-04") == ""
    assert gap(chain, "2026-03-05").startswith("window 2026-03-04 is not trained yet")


def test_windows_after_a_gap_do_not_close_it(chain: ModelChain) -> None:
    record(chain, "2026-03-02", "2026-03-03", "2026-03-09")
    found = gap(chain, "2026-03-06")
    assert found.startswith("windows 2026-03-04 to 2026-03-05 are not trained yet")
    again = gap(chain, "2026-03-09")
    assert again.startswith("windows 2026-03-04 to 2026-03-08 are not trained yet")


def test_after_a_warm_start_its_first_window_has_to_follow(chain: ModelChain) -> None:
    record(chain, "2026-02-01_2026-03-01")
    assert gap(chain, "2026-03-01") == gap(chain, "2026-03-02") == "", "no window follows it yet"
    record(chain, "2026-03-01")
    way_out = "(--from 2026-03-02; in Airflow, create a backfill from 2026-03-02)"
    assert gap(chain, "2026-03-03").endswith(f"begin with 2026-03-02 {way_out}")


def test_a_window_inside_the_warm_start_is_trained_already(chain: ModelChain) -> None:
    record(chain, "2026-02-01_2026-03-01")
    assert gap(chain, "2026-02-28") == "", "no window follows it yet"
    record(chain, "2026-03-01")
    inside = gap(chain, "2026-02-28")
    assert inside.startswith("window 2026-02-28 is part of the warm start 2026-02-01_2026-03-01")
    assert "begin with 2026-03-01" in inside
    assert "forebay forget ads --all" in inside
    assert gap(chain, "2026-02-01").startswith("window 2026-02-01 is part of"), "its first day"
    assert gap(chain, "2026-01-31") == "", "another history"
    assert gap(chain, "2026-02-01_2026-03-01") == "", "the warm start itself, again"


def test_windows_of_another_size_share_no_rows_with_trained_ones(chain: ModelChain) -> None:
    hours = WindowGrid(WindowSize.HOUR)
    record(chain, "2026-03-01", "2026-03-02T00")
    assert gap(chain, "2026-03-02").startswith(
        "window 2026-03-02 (2026-03-02T00:00Z to 2026-03-03T00:00Z) shares rows with window "
        "2026-03-02T00 (2026-03-02T00:00Z to 2026-03-02T01:00Z), which line 'main' has trained"
    )
    assert "another name" in gap(chain, "2026-03-01T05")
    assert gap(chain, "2026-03-02T01") == "", "days and then hours, without a row in both"
    asked = hours.between("2026-02-28T22", "2026-03-01T01")
    assert "window 2026-03-01T00 (" in overlap_with(chain, hours, asked)
    assert overlap_with(chain, hours, asked[:2]) == ""


def test_rows_of_a_forgotten_window_stay_until_it_is_trained_anew(chain: ModelChain) -> None:
    record(chain, "2026-03-01")
    assert Ledger(chain.home, "ads").forget("2026-03-01")
    assert gap(chain, "2026-03-01") == ""
    last = window_of("2026-03-01T23")
    assert there(chain.before(last)).window == "2026-03-01", "a model that has its rows already"
    assert "shares rows with window 2026-03-01" in gap(chain, last.key)


def test_days_of_another_zone_share_no_rows_with_those_that_are_trained(chain: ModelChain) -> None:
    berlin = WindowGrid(WindowSize.DAY, "Europe/Berlin")
    record(chain, "2026-03-01")
    for key in ("2026-03-01", "2026-03-02"):
        assert "dataset.timezone was changed" in gap_before(chain, berlin, berlin.parse(key)), key
    other = ModelChain(chain.home, "ads", "other")
    assert gap_before(other, berlin, berlin.parse("2026-03-02")) == "", "lines are independent"


def fingerprint(sources: dict[str, SourceSpec] = SOURCES, **more: Any) -> str:
    dataset = {"features": FEATURES, **more.pop("dataset", {})}
    return model_fingerprint_of(pipeline(("a", "b"), dataset=dataset, **more), sources)


def test_what_changes_a_model_s_meaning() -> None:
    columns = {"at": "timestamp", "n": "string"}
    compared = {"paradigm": "stream", "delay": "head"}
    changed = [
        fingerprint(),
        fingerprint(dataset={"features": dict(reversed(FEATURES.items()))}),
        fingerprint(dataset={"features": FEATURES | {"n": {"encode": "hash", "buckets": 11}}}),
        fingerprint(dataset={"label": {"column": "n", "greater_than": 3}}),
        fingerprint(dataset={"streams": {"both": {"sources": ["b", "a"]}}}),
        fingerprint({name: memory_source(name, columns=columns) for name in SOURCES}),
        fingerprint(train={"paradigm": "batch"}),
        fingerprint(train={"compare": ["batch"]}),
        fingerprint(train={"compare": [compared]}),
        fingerprint(train={"compare": [compared]}, model={"delay_head": {"hidden": [8]}}),
        fingerprint(train={"delay": "head"}),
        fingerprint(train={"delay": "fnw"}),
        fingerprint(train={"seeds": 2}),
        fingerprint(model={"tower": {"hidden": [8]}}),
        fingerprint(model={"mixture": {"embeddings": "shared"}}),
        fingerprint(model={"mixture": {"mode": "paper"}}),
        fingerprint(model={"mixture": {"memory_inputs": "random"}}),
        fingerprint(model={"mixture": {"adapt_learns": "both"}}),
        fingerprint(model={"mixture": {"adapt_learns": "stream"}}),
        fingerprint(model={"mixture": {"memory_embeddings": True}}),
    ]
    assert len(set(changed)) == len(changed)
    assert {len(each) for each in changed} == {16}


def test_what_may_change_from_one_window_to_the_next() -> None:
    columns = {"at": "timestamp", "n": "int", "unused": "string"}
    same = [
        fingerprint(),
        fingerprint({name: memory_source(name, columns=columns) for name in SOURCES}),
        fingerprint(model={"seed": 18}),
        fingerprint(model={"dense_learning_rate": 1, "embedding_learning_rate": 1}),
        fingerprint(model={"mixture": {"gain": 0.5}}),
        fingerprint(model={"delay_head": {"q_min": 0.5, "hidden": [8]}}),
        fingerprint(train={"guard": False}),
        fingerprint(train={"compare": []}),
        fingerprint(dataset={"label": {"column": "n", "known_at": "at"}}),
        fingerprint(train={"minibatch_rows": 7}, job={"buffers": {"rows_max": 9}}),
        fingerprint(
            dataset={"streams": {"a": {"sources": ["a"], "weight": 3}, "b": {"sources": ["b"]}}}
        ),
    ]
    assert len(set(same)) == 1


_PAPER: dict[str, Any] = {"model": {"mixture": {"mode": "paper"}}}
_COMPARED = {"train": {"paradigm": "stream", "compare": ["batch", "mixture"]}}


@pytest.mark.parametrize(
    ("recorded", "declared"),
    [
        ("bc0e326bd81c7527", {}),
        ("2f67db9f55b3c781", {"train": {"paradigm": "stream"}}),
        ("5ea71cd2b79dae9c", {"model": {"mixture": {"embeddings": "shared"}}}),
        ("4b822ab5499781e1", _PAPER),
        ("f078b803e5d607ab", {**_PAPER, "train": {"paradigm": "stream"}}),
        ("ad4113fb439aea57", {"model": {"mixture": {"mode": "paper", "embeddings": "separate"}}}),
        ("5ca1ea79e6502e03", {**_PAPER, **_COMPARED}),
    ],
)
def test_a_declaration_keeps_its_fingerprint(recorded: str, declared: dict[str, Any]) -> None:
    """Another one would refuse each line that was trained before."""
    two = {name: memory_source(name) for name in ("a", "b")}
    assert model_fingerprint_of(pipeline(("a", "b"), **declared), two) == recorded


def test_a_line_goes_on_with_the_model_that_it_has(chain: ModelChain) -> None:
    now = spec()
    require_compatible(chain, now, SOURCES)
    record(chain, "2026-03-01", fingerprint="another")
    with pytest.raises(ConfigError, match="changed since window 2026-03-01"):
        require_compatible(chain, now, SOURCES)
    record(chain, "2026-03-02", fingerprint=model_fingerprint_of(now, SOURCES))
    require_compatible(chain, now, SOURCES)


# What may become a link -------------------------------------------------------------------------


def planned(window: str, *, rows: int | None = 0, reason: str = "no rows") -> WindowPlan:
    span = window_of(window)
    source = source_plan("a", (span.start, span.end), ())
    return WindowPlan(
        window=window,
        generation=1,
        start=span.start,
        end=span.end,
        sources={"a": source.model_copy(update={"rows": rows, "reason": reason})},
        fingerprint="",
    )


def heard(chain: ModelChain, window: str, reason: str = "no rows", **ready: Any) -> bool:
    sources = {"a": memory_source("a", ready=ready)}
    size = WindowSize.HOUR if "T" in window else WindowSize.DAY
    found = pipeline(("a",), dataset={"window": size.value})
    with contextlib.suppress(NotReadyError):
        require_heard(chain, found, sources, planned(window, reason=reason))
        return True
    return False


def test_a_silent_source_is_named_with_the_ways_out(chain: ModelChain) -> None:
    record_link(chain, "2026-03-01", {"a": 5})
    record_link(chain, "2026-03-02", {"a": 0})
    named = r"window 2026-03-03: source 'a' is silent.*silent_max \(1d\), up to 2026-03-04T00:00Z"
    with pytest.raises(NotReadyError, match=named) as refused:
        require_heard(chain, spec(), SOURCES, planned("2026-03-03"))
    # A stream with an offset may read what is older than its source.
    assert str(refused.value).endswith("or declare when it begins or ends (starts, ends)")


def test_a_source_may_be_silent_for_a_day(chain: ModelChain) -> None:
    record_link(chain, "2026-03-01T22", {"a": 5})
    for hour in ("2026-03-01T23", *(f"2026-03-02T{hour:02}" for hour in range(23))):
        assert heard(chain, hour), hour
        record_link(chain, hour, {"a": 0})
    late = "2026-03-02T23"
    assert not heard(chain, late)
    assert heard(chain, late, late="skip")
    assert heard(chain, late, silent_max="25h")
    assert not heard(chain, "2026-03-01T23", silent_max="0s"), "no window may be without rows"
    for reason in ("", "before start", "after end", "skipped: no marker"):
        assert heard(chain, late, reason), reason


def test_silence_begins_with_the_line(chain: ModelChain) -> None:
    assert heard(chain, "2026-03-01"), "nobody knows what was before"
    assert heard(chain, "2026-02-01_2026-03-01"), "history may be older than the source"
    record_link(chain, "2026-02-01_2026-03-01", {"a": 0})
    assert heard(chain, "2026-03-01")
    record_link(chain, "2026-03-01", {"a": 0})
    assert not heard(chain, "2026-03-02")


@pytest.mark.parametrize(
    ("rows", "served", "trained", "dead"), [(7, 6, 6, 0), (None, 6, 5, 0), (6, 6, 6, 1)]
)
def test_rows_that_do_not_agree_are_named_with_the_way_out(
    chain: ModelChain, rows: int | None, served: int, trained: int, dead: int
) -> None:
    plan = planned("2026-03-01", rows=rows)
    found = link("2026-03-01", {"a": trained}, read={"a": ReadRows(rows=served, dead=dead)})
    with pytest.raises(RowsLostError) as raised:
        require_agreement(ModelChain(chain.home, "ads", "b"), plan, found)
    counts = f"source a: planned {rows}, served {served}, trained {trained}, dead {dead}"
    assert counts in str(raised.value)
    assert "forebay run ads --line b --from 2026-03-01 --to 2026-03-01" in str(raised.value)


def test_rows_that_agree_pass(chain: ModelChain) -> None:
    plan = planned("2026-03-01", rows=7)
    found = link("2026-03-01", {"a": 6}, read={"a": ReadRows(rows=7, dead=1)})
    require_agreement(chain, plan, found)
    require_learnt(chain, found, [6])


@pytest.mark.parametrize(
    ("window", "way"),
    [("2026-03-01", "forebay preview"), ("2026-02-01_2026-03-01", "train.warm_start")],
)
def test_who_has_learnt_nothing_begins_no_line(chain: ModelChain, window: str, way: str) -> None:
    found = link(window, {"a": 9})
    with pytest.raises(NotReadyError, match="cannot begin line 'main'") as raised:
        require_learnt(chain, found, [0])
    assert "9 rows of a" in str(raised.value)
    assert way in str(raised.value)
