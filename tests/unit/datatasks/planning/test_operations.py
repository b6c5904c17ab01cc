"""What one source gives to one window, and the digest that says whether it changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.stages import DAY, START, memory_source, noon, pipeline, stages, table

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.datatasks.planning import operations
from forebay.datatasks.planning.operations import (
    Listed,
    by_stream,
    fingerprint_of,
    identity_of,
    shares_of,
    window_hours,
)
from forebay.datatasks.planning.source_operation import SourceOperation
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan, plan_text, skipped_text
from forebay.datatasks.sources.common.contract.base import Scan
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.errors import ConfigError, DataError, InfrastructureError, NotReadyError

WINDOW = WindowGrid(WindowSize.DAY).parse("2026-03-02")


def share(**source: Any) -> Any:
    spec = pipeline(("a",))
    ((found,),) = shares_of(spec, {"a": memory_source("a", **source)}, [WINDOW]).values()
    return found


@pytest.mark.parametrize(
    ("starts", "ends", "reason", "base"),
    [
        *(("2026-03-02T05:30", None, "", 5), ("2026-03-02T06:00", "2026-03-02T07:00", "", 6)),
        *(("2026-03-03", None, "before start", 0), ("2026-03-02T23:59:59", None, "", 23)),
        *((None, "2026-03-02", "after end", 0), ("2026-01-01", "2026-03-01", "after end", 0)),
        (None, "2026-03-02T00:00:01", "", 0),
    ],
)
def test_a_share_is_clipped_to_the_source(
    starts: str | None, ends: str | None, reason: str, base: int
) -> None:
    found = share(starts=starts, ends=ends)
    assert (found.reason, found.hour_base) == (reason, base)
    assert (found.span is None) is bool(reason)
    plan = found.plan(tasks=3)
    assert (plan.tasks, plan.files, plan.rows, plan.hour_base) == (3, 0, 0, base)
    assert plan.data_from == (found.span or found.whole).start


def test_a_source_that_two_streams_read_has_shares_of_both() -> None:
    streams = {"x": {"sources": ["a"]}, "y": {"sources": ["a"], "offset": "7d", "feed": "stream"}}
    spec = pipeline((), dataset={"streams": streams})
    found = shares_of(spec, {"a": memory_source("a")}, [WINDOW])
    assert list(found) == ["a@x", "a@y"]
    plans = [each.plan() for (each,) in found.values()]
    of = [(each.source, each.stream, each.feed) for each in plans]
    assert of == [("a@x", "x", "batch"), ("a@y", "y", "stream")]
    assert [each.offset_seconds for each in plans] == [0, 7 * 86_400]
    assert plans[0].data_from - plans[1].data_from == 7 * DAY


@pytest.mark.parametrize("base", [0, 6])
def test_hours_are_moved_and_stay_small(base: int) -> None:
    hours = np.array([0, 1, 17], np.int32)
    found = window_hours(hours, base)
    assert (found.tolist(), found.dtype) == ([base, 1 + base, 17 + base], np.int32)
    assert hours.tolist() == [0, 1, 17]


@pytest.mark.parametrize("streams", [{"x": ["a", "a"]}, {"x": ["a"], "y": ["a"]}])
def test_no_window_reads_rows_twice(streams: dict[str, Any]) -> None:
    twice = {name: {"sources": names} for name, names in streams.items()}
    with pytest.raises(ConfigError, match="reads source 'a', and stream 'x' does with the same"):
        shares_of(pipeline((), dataset={"streams": twice}), {"a": memory_source("a")}, [WINDOW])


def test_sources_are_declared() -> None:
    sources = {"a": memory_source("a")}
    with pytest.raises(ConfigError, match="reads source 'b': not declared"):
        shares_of(pipeline(("a", "b")), sources, [WINDOW])


def plan(**changes: Any) -> SourcePlan:
    values = {"stream": "s", "source": "a", "feed": "batch", "tasks": 1, "files": 1, "rows": 5}
    span = {"data_from": START, "data_to": START + DAY}
    return SourcePlan.model_validate(values | span | {"fingerprint": "f"} | changes)


def test_a_fingerprint_is_of_what_decides_the_rows_and_of_nothing_else() -> None:
    later = START + timedelta(hours=1)
    changed: list[dict[str, Any]] = [
        *({}, {"stream": "t"}, {"feed": "stream"}, {"fingerprint": "g"}),
        *({"data_from": later}, {"data_to": later}),
    ]
    found = {fingerprint_of({"a": plan(**each)}) for each in changed}
    found |= {fingerprint_of({"b": plan()}), fingerprint_of({"a": plan(), "b": plan()})}
    assert (len(found), {len(each) for each in found}) == (len(changed) + 2, {32})
    same = {fingerprint_of({"a": plan(**each)}) for each in ({}, {"rows": 6}, {"reason": "x"})}
    assert len(same) == 1
    assert identity_of(plan()) == ("a", "s", "batch", START, START + DAY)
    assert identity_of(plan(fingerprint="g", rows=9)) == identity_of(plan())


def operation(found: Any, windows: int, ahead: int = 99, use: str = "a") -> SourceOperation:
    shares = shares_of(found.pipeline, found.sources, [found.window(n) for n in range(windows)])
    return SourceOperation(found.lister(use, ahead), shares[use])


def list_one(found: Any, use: str) -> Listed:
    one, key = operation(found, 1, 9, use), found.window(0).key
    one.list_window(key)
    return one.listed[key]


def test_one_scan_lists_all_windows_that_are_complete_up_to_a_bound(tmp_path: Path) -> None:
    with stages(tmp_path) as found:
        MEMORY["a"] = table([noon(0), noon(1), noon(1), noon(3)])
        every = operation(found, 5, ahead=3)
        keys = [found.window(number).key for number in range(5)]
        assert keys[0] not in every.listed
        every.list_window(keys[0])
        first = every.listed[keys[0]]
        assert [key in every.listed for key in keys] == [True, True, True, False, False]
        assert len(found.scans) == 1
        assert (first.plan.rows, first.plan.tasks, first.plan.reason) == (1, 1, "")
        assert every.listed[keys[1]].plan.rows == 2
        empty = every.listed[keys[2]]
        assert (empty.plan.rows, empty.plan.reason, every.lister.storage_calls) == (0, "no rows", 1)
        every.list_window(keys[4])
        assert keys[3] not in every.listed, "an earlier window is not scanned with a later one"
        assert len(found.scans) == 2


def test_windows_that_are_not_over_are_left_to_their_own_scan(tmp_path: Path) -> None:
    with stages(tmp_path) as found:
        MEMORY["a"] = table([noon(0), noon(1), noon(2)])
        found.now = found.window(1).end
        listed = operation(found, 3)
        listed.list_window(found.window(0).key)
        keys = [found.window(number).key for number in range(3)]
        assert [key in listed.listed for key in keys] == [True, True, False]
        with pytest.raises(StopIteration):
            listed.list_window("2020-01-01")


def test_tasks_of_a_stream_are_ordered_by_hour_and_then_by_source(tmp_path: Path) -> None:
    streams = {"both": {"sources": ["a", "b"]}, "alone": {"sources": ["c"]}}
    with stages(tmp_path, ("a", "b", "c"), dataset={"streams": streams}) as found:
        for name, hours in (("a", [0, 5]), ("b", [0, 3]), ("c", [1])):
            MEMORY[name] = table([START + timedelta(hours=hour) for hour in hours])
        tables = by_stream([list_one(found, name) for name in "abc"])
        assert list(tables) == ["both", "alone"]
        hours = tables["both"]["hour"].to_pylist()
        assert hours == sorted(hours)
        by_hour = zip(hours, tables["both"]["source"].to_pylist(), strict=True)
        assert [source for hour, source in by_hour if not hour] == ["a", "b"]
        assert isinstance(tables["alone"], pa.Table)


def test_a_time_before_the_epoch_is_a_time(tmp_path: Path) -> None:
    with stages(tmp_path) as found:
        MEMORY["a"] = table([datetime(1969, 1, 1, tzinfo=UTC)])
        assert list_one(found, "a").plan.rows == 0
        MEMORY["a"] = pa.table({"at": pa.array([None], pa.timestamp("us", "UTC")), "n": [1]})
        with pytest.raises(DataError):
            operation(found, 1).list_window(found.window(0).key)


def test_a_source_is_looked_at_soon_and_then_more_rarely_until_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stages(tmp_path, source={"ready": {"wait": "20s"}}) as found:
        found.late["a"] = START
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            found.now += timedelta(seconds=seconds)

        told: list[tuple[str, str, str]] = []
        listed = operation(found, 2)
        monkeypatch.setattr(listed, "stop", SimpleNamespace(wait=sleep))
        listed.waiting = lambda *facts: told.append(facts)
        with pytest.raises(NotReadyError, match="is not complete after 20s: no marker"):
            listed.list_window(found.window(0).key)
        assert slept[0] == 0.05
        assert all(later <= 1.5 * earlier + 1e-9 for earlier, later in pairwise(slept))
        assert sum(slept) == pytest.approx(20)
        assert max(slept) <= 5
        assert told == [(found.window(0).key, "a", "no marker")]
        slept.clear()
        with pytest.raises(NotReadyError):
            listed.list_window(found.window(1).key)
        assert slept == [], "the wait is one for all windows"


def test_the_deadline_may_pass_while_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stages(tmp_path, source={"ready": {"wait": "20s"}}) as found:
        found.late["a"] = START
        slept: list[float] = []
        instants = [found.now + timedelta(seconds=seconds) for seconds in (0, 19.9, 20.1)]
        listed = operation(found, 1)
        monkeypatch.setattr(listed, "stop", SimpleNamespace(wait=slept.append))
        listed.lister.clock = lambda: instants.pop(0) if instants else found.now + DAY
        with pytest.raises(NotReadyError):
            listed.list_window(found.window(0).key)
        assert slept == [0.0]


def test_a_wait_that_nobody_wants_any_more_ends(tmp_path: Path) -> None:
    """After Ctrl-C, while other threads of planning wait too."""
    with stages(tmp_path, source={"ready": {"wait": "1h"}}) as found:
        found.late["a"] = START
        listed = operation(found, 1)
        listed.stop.set()
        with pytest.raises(InfrastructureError, match="planning was ended"):
            listed.list_window(found.window(0).key)


def test_where_only_reading_can_count_the_rows_are_unknown() -> None:
    task = {"span": 0, "hour": 3, "partition": "t/0", "ranges": [], "size_bytes": 0, "cut": False}
    for counts, rows in (([5, None], None), ([5, 6], 11), ([], 0)):
        tasks = pa.Table.from_pylist([task | {"rows": n} for n in counts], TASK_SCHEMA)
        found = operations.listed(share(), Scan(tasks, ["digest"], 1), 0, "")
        assert (found.plan.rows, found.plan.tasks) == (rows, len(counts))
        assert found.plan.reason == ("" if counts else "no rows")


def test_plans_in_a_line() -> None:
    sources = {
        "a": plan(rows=1),
        "b": plan(source="b", rows=0, reason="skipped: no marker"),
        "c": plan(source="c", rows=12_345, reason="no rows"),
        "d": plan(source="d", rows=None),
    }
    fields = {"window": "2026-03-01", "generation": 1, "start": START, "end": START + DAY}
    found = WindowPlan.model_validate(fields | {"sources": sources, "fingerprint": "x"})
    assert plan_text(found) == (
        "generation 1: a 1 row, b 0 rows (skipped: no marker), c 12,345 rows (no rows), "
        "d an unknown number of rows"
    )
    assert skipped_text(found) == "b (no marker)"
