"""Planning windows: fusion, generations, starts and ends, lateness, Primus' window cases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.model_lines import mark_trained
from support.stages import let_count, table
from support.stages import memory_source as declared_source
from support.stages import pipeline as pipeline_of

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval, warm_start_window
from forebay.datatasks.planning.planner import PlanReport, plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.contract.base import Readiness
from forebay.datatasks.sources.memory.source import MEMORY, MemorySource
from forebay.errors import DataError, NotReadyError
from forebay.home.paths import Home

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def memory_source(name: str, times: list[datetime], **more: Any) -> SourceSpec:
    MEMORY[name] = table(times)
    return declared_source(name, **more)


def pipeline(streams: dict[str, Any], window: str = "1d", **dataset: Any) -> PipelineSpec:
    fields = {"window": window, "start": "2020-01-01", "streams": streams, **dataset}
    return pipeline_of((), dataset=fields)


ONE = pipeline({"history": {"sources": ["a"]}})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    before = set(MEMORY)
    yield Ledger(Home(tmp_path / "home"), "ads")
    for name in set(MEMORY) - before:
        del MEMORY[name]


def plan(
    ledger: Ledger,
    spec: PipelineSpec,
    sources: list[SourceSpec],
    *ends: str,
    reprocess: bool = False,
    **more: Any,
) -> PlanReport:
    windows = spec.dataset.grid.between(*ends)
    again = {each.key for each in windows} if reprocess else frozenset()
    given: dict[str, Any] = {"warm_start": None, "again": again, "clock": lambda: NOW} | more
    declared = {source.name: source for source in sources}
    return plan_windows(ledger.home.root.parent, spec, declared, ledger, windows, **given)


def rows(report: PlanReport) -> list[dict[str, int | None]]:
    return [{name: each.rows for name, each in p.sources.items()} for p in report.plans]


def reasons(report: PlanReport, source: str) -> list[str]:
    return [p.sources[source].reason for p in report.plans]


def noons(*days: str) -> list[datetime]:
    return [at(f"{day}T12:00") for day in days]


def test_one_scan_plans_all_windows(ledger: Ledger) -> None:
    days = [f"2020-03-{day:02d}" for day in range(1, 11)]
    source = memory_source("a", noons(*days, "2020-02-01"))
    warm = warm_start_window(at("2020-01-05"), ONE.dataset.grid.parse("2020-03-01"))
    report = plan(ledger, ONE, [source], "2020-03-01", "2020-03-10", warm_start=warm)
    assert (rows(report), report.storage_calls) == ([{"a": 1}] * 11, 1)
    assert report.plans[0].window == "2020-01-05_2020-03-01"
    assert ledger.windows() == [p.window for p in report.plans]
    again = plan(ledger, ONE, [source], "2020-03-01", "2020-03-10", warm_start=warm)
    assert (again.plans, again.reused) == (report.plans, 11)


def test_plan_ahead_bounds_a_scan(ledger: Ledger) -> None:
    source = memory_source("a", noons("2020-03-01"))
    spec = pipeline({"history": {"sources": ["a"]}}, plan_ahead_windows=4)
    assert plan(ledger, spec, [source], "2020-03-01", "2020-03-10").storage_calls == 3


def test_starts_and_ends_clip_windows(ledger: Ledger) -> None:
    hours = [at("2020-03-02T00:00") + timedelta(hours=n) for n in range(48)]
    source = memory_source("a", hours, starts="2020-03-02T06:00", ends="2020-03-03T18:00")
    report = plan(ledger, ONE, [source], "2020-03-01", "2020-03-04")
    assert rows(report) == [{"a": 0}, {"a": 18}, {"a": 18}, {"a": 0}]
    assert reasons(report, "a") == ["before start", "", "", "after end"]
    second = report.plans[1].sources["a"]
    span = (at("2020-03-02T06:00"), at("2020-03-03"))
    assert (second.data_from, second.data_to, second.hour_base) == (*span, 6)
    table = ledger.tasks("2020-03-02", 1)
    assert table["hour"].to_pylist() == list(range(6, 24))
    assert Ledger.data_task(table, 0, report.plans[1]).hour_base == 6


def test_changed_data_of_an_untrained_window_makes_a_new_generation(ledger: Ledger) -> None:
    source = memory_source("a", noons("2020-03-01", "2020-03-02"))
    first = plan(ledger, ONE, [source], "2020-03-01", "2020-03-02")
    MEMORY["a"] = table(noons("2020-03-01", "2020-03-02", "2020-03-02"))
    second = plan(ledger, ONE, [source], "2020-03-01", "2020-03-02")
    assert second.plans[0] == first.plans[0]
    assert (second.plans[1].generation, second.reused) == (2, 1)
    assert ledger.latest_plan("2020-03-02") == second.plans[1]


def test_trained_windows_are_not_looked_at_again(ledger: Ledger) -> None:
    source = memory_source("a", noons("2020-03-01", "2020-03-02"))
    first = plan(ledger, ONE, [source], "2020-03-01", "2020-03-02")
    for window in ("2020-03-01", "2020-03-02"):
        mark_trained(ledger, window, 1)
    MEMORY["a"] = table(noons("2020-03-01", "2020-03-01"))
    second = plan(ledger, ONE, [source], "2020-03-01", "2020-03-02")
    assert (second.plans, second.storage_calls, second.reused) == (first.plans, 0, 2)
    assert second.notes == []


def test_a_scan_for_new_windows_leaves_trained_ones_out(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = memory_source("a", noons("2020-03-01", "2020-03-02", "2020-03-03"))
    plan(ledger, ONE, [source], "2020-03-02", "2020-03-02")
    mark_trained(ledger, "2020-03-02", 1)
    scanned: list[list[int]] = []
    scan = MemorySource.scan

    def watch(self: MemorySource, spans: Any) -> Any:
        scanned.append([span.start.day for span in spans])
        return scan(self, spans)

    monkeypatch.setattr(MemorySource, "scan", watch)
    plan(ledger, ONE, [source], "2020-03-01", "2020-03-03")
    assert scanned == [[1, 3]]


def test_reprocess_makes_a_new_generation_with_the_same_tasks(ledger: Ledger) -> None:
    source = memory_source("a", noons("2020-02-01", "2020-03-01", "2020-03-02"))
    warm = warm_start_window(at("2020-01-05"), ONE.dataset.grid.parse("2020-03-01"))
    plan(ledger, ONE, [source], "2020-03-01", "2020-03-02", warm_start=warm)
    mark_trained(ledger, "2020-03-02", 1)
    again = plan(ledger, ONE, [source], "2020-03-02", "2020-03-02", warm_start=warm, reprocess=True)
    wanted = [("2020-01-05_2020-03-01", 1), ("2020-03-02", 2)]
    assert [(p.window, p.generation) for p in again.plans] == wanted
    assert ledger.tasks("2020-03-02", 2).equals(ledger.tasks("2020-03-02", 1))
    kept = plan(ledger, ONE, [source], "2020-03-02", "2020-03-02", warm_start=warm)
    assert kept.plans[1].generation == 1, "what is proposed counts once a job trains it"
    assert ledger.proposed("2020-03-02") == 2
    let_count(ledger, "2020-03-02", 2)
    resumed = plan(ledger, ONE, [source], "2020-03-02", "2020-03-02", warm_start=warm)
    assert resumed.plans == again.plans, "a reprocess that was cut off goes on"


def test_a_declaration_that_asks_for_other_rows(ledger: Ledger) -> None:
    source = memory_source("a", noons("2020-03-01", "2020-03-02"))
    plan(ledger, ONE, [source], "2020-03-01", "2020-03-02")
    mark_trained(ledger, "2020-03-01", 1)
    moved = pipeline({"history": {"sources": ["a"], "offset": "24h"}})
    report = plan(ledger, moved, [source], "2020-03-01", "2020-03-02")
    assert [p.generation for p in report.plans] == [1, 2]
    assert "streams or offsets have been changed" in report.notes[0]


def test_a_window_that_is_not_over_is_refused_and_earlier_ones_are_kept(ledger: Ledger) -> None:
    source, early = memory_source("a", noons("2020-03-01")), at("2020-03-02T05:00")
    with pytest.raises(NotReadyError, match="2020-03-02 is not over"):
        plan(ledger, ONE, [source], "2020-03-01", "2020-03-02", clock=lambda: early)
    assert ledger.windows() == ["2020-03-01"]
    assert ledger.history("2020-03-02")[-1]["event"] == "not planned"


class _Late(MemorySource):
    def readiness(self, span: Interval) -> Any:
        found = super().readiness(span)
        late = span.end > at("2020-03-03")
        return type(found)(ready=not late, reason="no marker" if late else "")


def test_what_is_recorded_has_no_hole(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class LateA(MemorySource):
        def readiness(self, span: Interval) -> Readiness:
            return Readiness(ready=self.spec.name != "a", reason="no marker")

    monkeypatch.setattr("forebay.datatasks.sources.memory.source.MemorySource", LateA)
    late = memory_source("a", noons("2020-03-03"), ends="2020-03-04")
    whole = memory_source("b", noons("2020-03-03", "2020-03-04"))
    spec = pipeline({"history": {"sources": ["a", "b"]}})
    with pytest.raises(NotReadyError, match="window 2020-03-03: source 'a' is not complete"):
        plan(ledger, spec, [late, whole], "2020-03-03", "2020-03-04")
    assert ledger.windows() == []


def test_late_data_is_skipped_by_policy_and_planned_when_it_comes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.datatasks.sources.memory.source.MemorySource", _Late)
    ready, minutes = {"wait": "1h", "late": "skip"}, count(step=9)
    source = memory_source("a", noons("2020-03-02", "2020-03-03"), ready=ready)
    clock: dict[str, Any] = {"clock": lambda: NOW + timedelta(minutes=next(minutes))}
    report = plan(ledger, ONE, [source], "2020-03-02", "2020-03-03", **clock)
    assert rows(report) == [{"a": 1}, {"a": 0}]
    assert reasons(report, "a") == ["", "skipped: no marker"]
    assert ledger.history("2020-03-03")[0]["event"] == "waiting"
    monkeypatch.setattr("forebay.datatasks.sources.memory.source.MemorySource", MemorySource)
    again = plan(ledger, ONE, [source], "2020-03-02", "2020-03-03")
    assert (rows(again), [p.generation for p in again.plans]) == ([{"a": 1}, {"a": 1}], [1, 2])


def test_each_stream_plans_its_own_rows_of_a_source_that_both_read(ledger: Ledger) -> None:
    times = noons("2020-02-29", "2020-02-29", "2020-03-01", "2020-03-01", "2020-03-01")
    source = memory_source("a", times + noons("2020-03-02"))
    spec = pipeline({"one": {"sources": ["a"]}, "two": {"sources": ["a"], "offset": "24h"}})
    report = plan(ledger, spec, [source], "2020-03-01", "2020-03-02")
    first, second = report.plans
    assert rows(report) == [{"a@one": 3, "a@two": 2}, {"a@one": 1, "a@two": 3}]
    # The rows of a day are in its own window, and in the one after it.
    assert first.sources["a@one"].fingerprint == second.sources["a@two"].fingerprint
    tasks = ledger.tasks(first.window, first.generation)
    assert set(tasks["source"].to_pylist()) == {"a@one", "a@two"}
    ids = tasks["task_id"].to_pylist()
    assert len(set(ids)) == len(ids)
    again = plan(ledger, spec, [source], "2020-03-01", "2020-03-02")
    assert (again.reused, [each.generation for each in again.plans]) == (2, [1, 1])


def test_an_error_of_one_source_is_raised_after_the_others_have_ended(ledger: Ledger) -> None:
    good = memory_source("a", noons("2020-03-01"))
    bad = memory_source("b", noons("2020-03-01"), options={"table": "nowhere"})
    spec = pipeline({"one": {"sources": ["a"]}, "two": {"sources": ["b"]}})
    with pytest.raises(DataError, match="nowhere"):
        plan(ledger, spec, [good, bad], "2020-03-01", "2020-03-01")
    assert ledger.windows() == []


def test_no_windows_is_nothing_to_do(ledger: Ledger) -> None:
    sources = {"a": memory_source("a", noons("2020-01-01"))}
    report = plan_windows(
        ledger.home.root, ONE, sources, ledger, [], warm_start=None, clock=lambda: NOW
    )
    assert (report.plans, report.storage_calls, report.reused) == ([], 0, 0)
