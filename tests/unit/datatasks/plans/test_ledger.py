"""The ledger: whole generations or none, checksums, a million tasks, torn tails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.cpu_limits import cpu_limit
from support.crashes import deaths
from support.model_lines import mark_trained
from support.there import there

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.manifests import with_ids
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.datatasks.task_table import ROW_RANGE_TYPE, TASK_SCHEMA
from forebay.errors import ConfigError, DataError, FencedError, InfrastructureError
from forebay.home.database.open import close_databases
from forebay.home.paths import Home

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Home(tmp_path), "ads")


def tasks(hours: list[int]) -> pa.Table:
    return many_tasks([f"f{n}" for n in range(len(hours))], np.array(hours, np.int32))


def many_tasks(names: list[str], hours: np.ndarray) -> pa.Table:
    count = len(names)
    ten, empty = pa.array(np.full(count, 10)), pa.repeat("", count)
    parts = [pa.array(names), pa.array(np.zeros(count, np.int64)), ten, ten, ten, empty]
    ranges = pa.StructArray.from_arrays(parts, fields=list(ROW_RANGE_TYPE))
    listed = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), ranges)
    spans = pa.array(np.zeros(count, np.int32))
    columns = [spans, pa.array(hours), empty, listed, ten, ten]
    return pa.table([*columns, pa.repeat(pa.scalar(value=False), count)], schema=TASK_SCHEMA)


def source_plan(name: str, stream: str, count: int) -> SourcePlan:
    fields = {"stream": stream, "source": name, "feed": "batch", "fingerprint": "f"}
    span = {"data_from": START, "data_to": START + DAY, "hour_base": 2 if name == "b" else 0}
    figures = {"tasks": count, "files": count, "rows": 10 * count}
    return SourcePlan.model_validate(fields | span | figures)


def window_plan(
    generation: int = 1, window: str = "2026-03-01", start: datetime = START, days: int = 1
) -> WindowPlan:
    sources = {
        "a": source_plan("a", "history", 3),
        "b": source_plan("b", "history", 2),
        "c": source_plan("c", "../odd stream/", 1),
    }
    span = {"window": window, "start": start, "end": start + days * DAY}
    fields = {"generation": generation, "sources": sources, "fingerprint": "x"}
    return WindowPlan.model_validate(span | fields)


def record(
    ledger: Ledger, generation: int = 1, window: str = "2026-03-01", start: datetime = START
) -> WindowPlan:
    plan = window_plan(generation, window, start)
    history = pa.concat_tables([with_ids(tasks([0, 4, 7]), "a"), with_ids(tasks([2, 7]), "b")])
    ledger.record_plan(plan, {"history": history, "../odd stream/": with_ids(tasks([4]), "c")})
    return plan


def test_tasks_come_back_in_order(ledger: Ledger) -> None:
    plan = record(ledger)
    assert (ledger.latest_plan("2026-03-01"), ledger.plan("2026-03-01", 1)) == (plan, plan)
    table = ledger.tasks("2026-03-01", 1)
    assert table["task_id"].to_pylist() == ["a/0", "b/0", "a/1", "c/0", "a/2", "b/1"]
    assert table["hour"].to_pylist() == [0, 2, 4, 4, 7, 7]
    task = Ledger.data_task(table, 1, plan)
    assert (task.task_id, task.source, task.generation) == ("b/0", "b", 1)
    assert (task.hour, task.hour_base, task.rows, task.cut) == (2, 2, 10, False)
    assert task.ranges[0].path == "f0"
    assert (task.data_from, task.data_to) == (START, START + DAY)


def test_windows_are_in_the_order_of_their_ends(ledger: Ledger) -> None:
    for day in (2, 0, 1):
        record(ledger, window=f"2026-03-0{day + 1}", start=START + DAY * day)
    warm_start = window_plan(window="2026-02-01_2026-03-03", start=START - 28 * DAY, days=30)
    ledger.record_plan(warm_start, {})
    keys = ["2026-03-01", "2026-02-01_2026-03-03", "2026-03-02", "2026-03-03"]
    assert ledger.windows() == keys


def test_a_key_stands_for_one_time_once_it_is_trained(ledger: Ledger) -> None:
    later = timedelta(hours=1)
    record(ledger, window="2026-03-02", start=START + DAY)
    record(ledger, 2, window="2026-03-02", start=START + DAY + later)
    record(ledger, window="2026-03-01", start=START + later)
    assert ledger.windows() == ["2026-03-01", "2026-03-02"], "another zone, and nothing trained"
    mark_trained(ledger, "2026-03-02", 2, "b")
    with pytest.raises(ConfigError) as raised:
        record(ledger, 3, window="2026-03-02", start=START + DAY)
    said = "window 2026-03-02 was trained as 2026-03-02T01:00Z to 2026-03-03T01:00Z, but is "
    assert said in str(raised.value)
    assert "dataset.timezone" in str(raised.value)
    assert ledger.generations("2026-03-02") == [1, 2]
    record(ledger, 3, window="2026-03-02", start=START + DAY + later)


def test_a_writer_that_dies_at_any_moment_leaves_a_whole_generation_or_none(
    ledger: Ledger, tmp_path: Path
) -> None:
    for number, _ in enumerate(deaths(tmp_path, lambda _: record(ledger)), start=1):
        close_databases()
        if ledger.latest_plan("2026-03-01") is None:
            assert ledger.history() == []
            continue
        assert ledger.tasks("2026-03-01", 1).num_rows == 6
        assert number > 1
    assert ledger.latest_plan("2026-03-01") == window_plan()


def test_a_forgotten_window_is_not_marked_trained(ledger: Ledger) -> None:
    record(ledger)
    ledger.forget("2026-03-01")
    with pytest.raises(InfrastructureError, match=r"is gone: the window was forgotten"):
        mark_trained(ledger, "2026-03-01", 1)
    assert ledger.windows() == []


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_manifest_is_named_with_the_way_out(ledger: Ledger, damage: str) -> None:
    record(ledger)
    path = next(path for path in ledger.store.root.rglob("*") if "g1-history" in path.name)
    path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:-1] + b"?")
    way = "forebay forget ads 2026-03-01 --line main"
    with pytest.raises(DataError, match=rf"generation 1: {path} .* .`{way}`"):
        ledger.tasks("2026-03-01", 1)


def test_the_newest_trained_generation(ledger: Ledger) -> None:
    record(ledger)
    record(ledger, 2)
    mark_trained(ledger, "2026-03-01", 1)
    assert ledger.trained("2026-03-01") == 1
    mark_trained(ledger, "2026-03-01", 2)
    assert (ledger.trained("2026-03-01"), ledger.history("2026-03-01")[2]["step"]) == (2, 4)
    events = [entry["event"] for entry in ledger.history("2026-03-01")]
    assert events == ["planned", "planned", "trained", "trained"]


def test_each_line_keeps_the_plan_of_its_own_model(ledger: Ledger) -> None:
    key = "2026-03-01"
    other = Ledger(ledger.home, "ads", "other")
    record(ledger)
    mark_trained(ledger, key, 1)
    record(other, 2)
    assert (newest(ledger), newest(other)) == (1, 2)
    assert (ledger.trained(key), other.trained(key)) == (1, None)
    assert (done(ledger), done(other)) == ([1], [])
    assert newest(Ledger(ledger.home, "ads", "third")) == 2, "who has no model takes the newest"
    mark_trained(other, key, 2, "other")
    assert (done(ledger), done(other)) == ([1], [2])
    record(ledger, 3)
    assert (newest(ledger), newest(other)) == (3, 2)
    assert (done(ledger), done(other)) == ([], [2])
    ledger.forget(key)
    assert (ledger.latest_plan(key), newest(other)) == (None, 2)
    record(ledger, 4)
    assert (newest(ledger), newest(other)) == (4, 2)
    assert (done(ledger), done(other), newest(Ledger(ledger.home, "ads", "third"))) == ([], [2], 4)


def test_a_plan_that_other_lines_have_trained_outlives_its_being_forgotten(ledger: Ledger) -> None:
    key = "2026-03-01"
    other, third = (Ledger(ledger.home, "ads", line) for line in ("other", "third"))
    record(ledger)
    mark_trained(ledger, key, 1)
    mark_trained(other, key, 1, "other")
    assert ledger.forget(key)
    assert not ledger.forget(key)
    assert (ledger.windows(), other.windows()) == ([], [key])
    assert (ledger.trained(key), other.trained(key)) == (None, 1)
    assert [each.forgotten({key: 1}) for each in (ledger, other)] == [{key}, set()]
    assert len(other.tasks(key, 1)) == len(third.tasks(key, newest(third)))
    assert other.forget(key)
    assert third.latest_plan(key) is None, "nobody who has asked for it or trained it wants it"
    record(other, 2)
    assert (newest(ledger), newest(other), newest(third)) == (2, 2, 2)
    assert ledger.forgotten({key: 2}) == set()
    lines = [each["line"] for each in ledger.history(key) if each["event"] == "forgotten"]
    assert lines == ["main", "other"]


def test_a_generation_of_other_data_than_the_newest_is_told(ledger: Ledger) -> None:
    for generation, fingerprint in enumerate(("one", "one", "two", "one"), start=1):
        made = window_plan(generation).model_copy(update={"fingerprint": fingerprint})
        ledger.record_plan(made, {})
        changed = ledger.data_changed({"2026-03-01": 1, "2026-03-02": 1})
        assert list(changed) == (["2026-03-01"] if fingerprint == "two" else [])
    assert ledger.data_changed({"2026-03-01": 9}) == {}


def done(ledger: Ledger) -> list[int]:
    """Of windows that need no training."""
    key = "2026-03-01"
    state = ledger.state(key)
    found = [plan.generation for plan in ledger.trained_plans([key, "2026-03-02"]).values()]
    assert found == ([state.plan.generation] if state.plan and state.is_trained else [])
    return found


def newest(ledger: Ledger) -> int:
    return there(ledger.latest_plan("2026-03-01")).generation


@pytest.mark.parametrize("window", ["", ".", "../../store", "2026-03-02"])
def test_what_is_no_window_is_not_forgotten(ledger: Ledger, window: str) -> None:
    record(ledger)
    assert not ledger.forget(window)
    assert ledger.windows() == ["2026-03-01"]
    assert ledger.store.root.is_dir()


def test_one_window_is_forgotten_and_its_numbers_are_not_used_again(ledger: Ledger) -> None:
    record(ledger)
    with pytest.raises(FencedError, match="same time"):
        record(ledger)
    record(ledger, 2)
    record(ledger, window="2026-03-02")
    assert ledger.generations("2026-03-01") == [1, 2]
    assert ledger.forget("2026-03-01")
    assert (ledger.windows(), ledger.latest_plan("2026-03-01")) == (["2026-03-02"], None)
    assert (ledger.generations("2026-03-01"), ledger.state("2026-03-01").next_generation) == ([], 3)
    with pytest.raises(FencedError):
        record(ledger, 2)


def test_history_is_of_one_window_or_of_all(ledger: Ledger) -> None:
    ledger.note("w", "planned", rows=3)
    ledger.note("v", "trained")
    assert [entry["event"] for entry in ledger.history()] == ["planned", "trained"]
    (entry,) = ledger.history("w")
    assert (entry["window"], entry["event"], entry["rows"]) == ("w", "planned", 3)
    assert entry["at"].endswith("+00:00")


def test_a_million_tasks_in_one_manifest(ledger: Ledger) -> None:
    count = 1_000_000
    rng = np.random.default_rng(1)
    names = np.char.add("date=2026-03-01/part-", np.arange(count).astype(str)).tolist()
    table = many_tasks(names, np.sort(rng.integers(0, 24, count)).astype(np.int32))
    sources = {"a": source_plan("a", "history", count)}
    plan = window_plan().model_copy(update={"sources": sources})
    with cpu_limit("no Python object for each task", 10):
        ledger.record_plan(plan, {"history": with_ids(table, "a")})
        loaded = ledger.tasks("2026-03-01", 1)
    assert loaded.num_rows == count
    assert Ledger.data_task(loaded, count - 1, plan).task_id == f"a/{count - 1}"
