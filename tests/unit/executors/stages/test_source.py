"""The source stage: which runs are scanned together, what is waited for, and how long."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.model_lines import mark_trained
from support.stages import DAY, START, Stages, noon, pipeline, stages, table
from support.there import there

from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.sources.common.contract.base import Scan
from forebay.datatasks.sources.memory.source import MEMORY, MemorySource
from forebay.errors import ConfigError, DataError, NotReadyError

HOUR = timedelta(hours=1)


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path) as each:
        MEMORY["a"] = table([noon(number) for number in range(-3, 10)])
        yield each


def spans(found: Stages) -> list[list[int]]:
    """Scans as numbers of days."""
    return [[(span.start - START).days for span in scanned] for _, scanned in found.scans]


def test_a_retry_finds_what_its_pass_listed(found: Stages) -> None:
    first = found.source(4)
    assert (first.rows, first.tasks, first.files) == (1, 1, 1)
    MEMORY["a"] = table([noon(4), noon(4)])
    assert found.source(4) == first.model_copy(update={"storage_calls": 0})
    cleared = found.source(4, by="r#1")
    assert (cleared.rows, cleared.storage_calls) == (2, 1)
    assert cleared.fingerprint != first.fingerprint


def test_a_run_that_was_deleted_and_made_again_lists_anew(found: Stages) -> None:
    """Airflow gives both the same id, and clears of neither were counted."""
    found.source(3, by="r3#0", asked=[(4, "r4#0")])
    found.now += HOUR
    MEMORY["a"] = table([noon(4), noon(4)])
    made = found.now
    assert found.source(4, by="r4#0", since=made - 2 * HOUR).rows == 1, "the run was there already"
    assert found.ready(4, by="r4#0", since=made).state == "listed", "complete, and not listed"
    again = found.source(4, by="r4#0", since=made)
    assert (again.rows, again.storage_calls) == (2, 1)
    assert found.source(4, by="r4#0", since=made) == again.model_copy(update={"storage_calls": 0})
    assert found.sink(4, "r4#0").rows == {"a": 2}


def test_an_earlier_scan_is_not_the_runs(found: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[datetime] = []

    def scan(self: MemorySource, asked: Sequence[Interval]) -> Scan:
        found.now += HOUR
        made.append(found.now)
        found.now += HOUR
        return MemorySource.scan(self, asked)

    module = __import__("forebay.datatasks.sources.memory.source", fromlist=["MemorySource"])
    monkeypatch.setattr(module.MemorySource, "scan", scan)
    found.source(3, by="r3#0", asked=[(4, "r4#0")])
    assert found.source(4, by="r4#0", since=made[0]).storage_calls == 1


def test_a_run_that_was_made_again_waits_for_its_own_time(tmp_path: Path) -> None:
    with stages(tmp_path, source={"ready": {"wait": "2h"}}) as found:
        MEMORY["a"] = table([noon(0)])
        found.now = START + 2 * DAY
        found.late["a"] = START
        assert found.source(0).deadline == found.now + 2 * HOUR
        made = found.now = found.now + DAY
        assert found.ready(0, since=made).deadline is None, "it has not asked yet"
        found.now += HOUR
        assert found.source(0, since=made).deadline == made + 3 * HOUR
        found.now += HOUR
        for result in (found.source(0, since=made), found.ready(0, since=made)):
            assert result.deadline == made + 3 * HOUR


def test_windows_that_cannot_be_planned_are_left_out(found: Stages) -> None:
    found.now = START + 4 * DAY + HOUR  # window 4 has just begun
    found.late["a"] = START + 3 * DAY
    found.source(1, by="r1#0")
    asked = [(1, "r1#0"), (3, "r3#0"), (4, "r4#0"), (-2, "r-2#0"), (2, "r2#0")]
    found.source(0, by="r0#0", asked=asked)
    assert spans(found) == [[1], [0, 2]]


def test_plan_ahead_bounds_a_scan(tmp_path: Path) -> None:
    with stages(tmp_path, dataset={"plan_ahead_windows": 2}) as found:
        MEMORY["a"] = table([noon(0)])
        found.source(5, asked=[(number, "r#0") for number in range(8)])
        assert spans(found) == [[0, 5]]


def test_a_window_that_is_not_over_waits(found: Stages) -> None:
    found.now = START + HOUR
    for result in (found.source(0), found.ready(0)):
        assert (result.state, result.deadline) == ("waiting", START + DAY)
        assert "2026-03-01 is not over" in result.reason
    assert found.scans == []


def test_a_window_is_over_at_its_end(found: Stages) -> None:
    found.now = found.window(3).end
    assert found.ready(3).state == "listed"
    found.source(1, asked=[(3, "r3#0"), (4, "r4#0")])
    assert spans(found) == [[1, 3]]


def test_only_a_source_s_own_time_has_to_be_complete(tmp_path: Path) -> None:
    with stages(tmp_path, source={"starts": "2026-03-01T06:00:00Z"}) as found:
        MEMORY["a"] = table([noon(0)])
        found.late["a"] = START
        assert "for 2026-03-01T06:00Z to 2026-03-02T00:00Z" in found.ready(0).reason


def test_outside_the_source_s_time_nothing_is_asked(tmp_path: Path) -> None:
    with stages(tmp_path, source={"starts": "2026-03-03"}) as found:
        MEMORY["a"] = table([noon(5)])
        result = found.source(1, asked=[(0, "r#0")])
        assert (result.reason, result.rows, result.storage_calls) == ("before start", 0, 0)
        head = there(Listings(found.ledger).head("a", found.window(1).key))
        assert (head.storage_calls, head.windows_scanned, found.ready(0).state) == (0, 0, "listed")
        assert found.scans == []
        found.late["a"] = START
        assert found.ready(0, by="r#1").state == "listed", "a source is asked about its own time"
        assert found.source(0, by="r#1").rows == 0


def test_late_data_waits_until_a_deadline_that_outlives_the_process(tmp_path: Path) -> None:
    with stages(tmp_path, source={"ready": {"wait": "2h"}}) as found:
        MEMORY["a"] = table([noon(0)])
        found.now = asked = START + 2 * DAY
        found.late["a"] = START
        first, span = found.source(0), "2026-03-01T00:00Z to 2026-03-02T00:00Z"
        reason = f"source 'a' is not complete for {span}: no marker"
        assert (first.state, first.reason, first.deadline) == ("waiting", reason, asked + 2 * HOUR)
        found.now += HOUR
        assert (found.source(0), found.ready(0)) == (first, first)
        [note] = found.ledger.history("2026-03-01")
        assert (note["event"], note["source"], note["reason"]) == ("waiting", "a", "no marker")
        found.now += HOUR
        with pytest.raises(NotReadyError, match="2026-03-01: source 'a' is not complete after 2h:"):
            found.source(0)
        assert found.ledger.history("2026-03-01")[-1]["error"] == "NotReadyError"
        cleared = found.source(0, by="r#1")
        assert cleared.deadline == found.now + 2 * HOUR
        with pytest.raises(NotReadyError):
            found.source(0)  # the pass before does not get the new one's time
        found.late.clear()
        assert found.source(0, by="r#1").rows == 1


def test_late_data_is_skipped_by_policy(tmp_path: Path) -> None:
    with stages(tmp_path, source={"ready": {"late": "skip"}}) as found:
        MEMORY["a"] = table([noon(0)])
        found.late["a"] = START
        result = found.source(0)
        assert (result.state, result.reason, result.rows) == ("listed", "skipped: no marker", 0)
        found.late.clear()
        assert found.source(0).reason == "skipped: no marker", "a retry does not look again"
        assert found.scans == []
        assert found.source(0, by="r#1").rows == 1


def test_looking_at_what_is_listed_tells_what_was_found(found: Stages) -> None:
    listed = found.source(3)
    assert found.ready(3) == listed.model_copy(update={"storage_calls": 0})


def test_bad_data_stops_no_other_window(found: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    class Broken(MemorySource):
        def scan(self, spans: Sequence[Interval]) -> Scan:
            tried.append(len(spans))
            if any(span.start == START + 5 * DAY for span in spans):
                raise DataError("part-0.parquet cannot be read")
            return super().scan(spans)

    monkeypatch.setattr("forebay.datatasks.sources.memory.source.MemorySource", Broken)
    asked = [(4, "r#0"), (5, "r#0")]
    assert found.source(4, asked=asked).windows_scanned == 1
    with pytest.raises(DataError, match="part-0"):
        found.source(5, asked=asked)
    [note] = found.ledger.history("2026-03-06")
    assert (note["event"], note["operation"]) == ("not planned", "source 2026-03-06 a")
    assert tried == [2, 1, 1]
    monkeypatch.undo()
    assert found.source(5).rows == 1, "what failed has listed nothing"


def test_a_moved_window_is_listed_again(found: Stages) -> None:
    found.source(4)
    found.pipeline = pipeline(
        ["a"], dataset={"streams": {"a": {"sources": ["a"], "offset": "24h"}}}
    )
    assert (found.source(4).storage_calls, spans(found)) == (1, [[4], [3]])


def test_a_source_that_is_not_read(found: Stages) -> None:
    with pytest.raises(ConfigError, match="reads no source 'b': a"):
        found.stage(0, "b")


def test_one_call_at_a_time_looks_at_a_source(found: Stages) -> None:
    results = []
    call = threading.Thread(target=lambda: results.append(found.source(4)))
    with found.lister("a").alone():
        call.start()
        call.join(0.3)
        assert call.is_alive()
    call.join(30)
    assert results[0].state == "listed"


def test_another_scan_of_files_that_does_not_end_is_not_awaited(tmp_path: Path) -> None:
    """Waiting saves storage calls; a process that was stopped holds nobody up."""
    with stages(tmp_path, schedule={"plan_timeout": "1s"}) as found, found.lister("a").alone():
        MEMORY["a"] = table([noon(4)])
        assert found.source(4).rows == 1


class TestWarmStart:
    @pytest.fixture
    def warm(self, tmp_path: Path) -> Iterator[Stages]:
        with stages(tmp_path, train={"warm_start": "2026-02-20"}) as found:
            MEMORY["a"] = table([noon(number) for number in range(-8, 10)])
            yield found

    def test_the_first_window_s_scan_covers_it(self, warm: Stages) -> None:
        result = warm.source(2, by="r2#0", asked=[(1, "r1#0"), (3, "r3#0")])
        assert (result.windows_scanned, spans(warm)) == (4, [[-9, 1, 2, 3]])
        assert warm.source(1, by="r1#0", asked=[(3, "r3#0")]).storage_calls == 0
        sunk = warm.sink(1, "r1#0")
        assert sunk.rows == {"a": 1}
        key = "2026-02-20_2026-03-02"
        plan = there(warm.ledger.latest_plan(key))
        assert (plan.sources["a"].rows, warm.ledger.windows()) == (9, [key, "2026-03-02"])

    @pytest.mark.parametrize(
        ("asking", "waiting", "scanned"),
        [(1, 2, [-9, 1]), (2, 1, [2])],
        ids=["the first window lists nothing else", "a later window does not have to list it"],
    )
    def test_where_one_is_planned_ahead(
        self, tmp_path: Path, asking: int, waiting: int, scanned: list[int]
    ) -> None:
        train, dataset = {"warm_start": "2026-02-20"}, {"plan_ahead_windows": 1}
        with stages(tmp_path, train=train, dataset=dataset) as found:
            MEMORY["a"] = table([noon(number) for number in range(-8, 10)])
            found.source(asking, by=f"r{asking}#0", asked=[(waiting, f"r{waiting}#0")])
            assert spans(found) == [scanned]

    def test_later_windows_do_not_take_it_for_theirs(self, warm: Stages) -> None:
        warm.source(1, by="r1#0", asked=[(2, "r2#0")])
        warm.sink(1, "r1#0")
        warm.source(5, by="r5#0", asked=[(6, "r6#0")])
        assert spans(warm) == [[-9, 1, 2], [5, 6]]

    def test_a_cleared_first_window_lists_it_again(self, warm: Stages) -> None:
        warm.source(1)
        warm.sink(1)
        warm.source(1, by="r#1")
        assert spans(warm) == [[-9, 1], [-9, 1]]

    def test_both_have_to_be_complete(self, warm: Stages) -> None:
        warm.late["a"] = START - 3 * DAY
        with pytest.raises(NotReadyError, match="window 2026-02-20_2026-03-02: source 'a'"):
            warm.source(1)

    def test_a_trained_one_is_not_looked_at(self, warm: Stages) -> None:
        warm.source(1)
        warm.sink(1)
        mark_trained(warm.ledger, "2026-02-20_2026-03-02", 1)
        mark_trained(warm.ledger, "2026-03-02", 1)
        warm.source(0, by="r0#0")
        warm.source(1, by="r#1")
        assert spans(warm) == [[-9, 1], [0], [1]]
