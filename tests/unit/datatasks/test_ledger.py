"""The ledger: whole generations or none, checksums, a million tasks, torn tails."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.crashes import deaths, tree_at

from forebay.datatasks.ledger import Ledger, with_ids
from forebay.datatasks.plans import SourcePlan, WindowPlan
from forebay.datatasks.task_table import ROW_RANGE_TYPE, TASK_SCHEMA
from forebay.errors import ConfigError, DataError, FencedError, InfrastructureError
from forebay.home.paths import Home

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Home(tmp_path), "ads")


def tasks(hours: list[int], prefix: str = "f") -> pa.Table:
    count = len(hours)
    names = [f"{prefix}{n}" for n in range(count)]
    return many_tasks(names, np.array(hours, np.int32))


def many_tasks(names: list[str], hours: np.ndarray) -> pa.Table:
    count = len(names)
    ten = pa.array(np.full(count, 10))
    ranges = pa.StructArray.from_arrays(
        [pa.array(names), pa.array(np.zeros(count, np.int64)), ten, ten, ten],
        fields=list(ROW_RANGE_TYPE),
    )
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    return pa.table(
        [
            pa.array(np.zeros(count, np.int32)),
            pa.array(hours),
            pa.repeat(pa.scalar(""), count),
            pa.ListArray.from_arrays(offsets, ranges),
            ten,
            ten,
            pa.repeat(pa.scalar(value=False), count),
        ],
        schema=TASK_SCHEMA,
    )


def source_plan(name: str, stream: str, count: int) -> SourcePlan:
    return SourcePlan(
        stream=stream,
        source=name,
        feed="batch",
        data_from=START,
        data_to=START + DAY,
        tasks=count,
        files=count,
        rows=10 * count,
        fingerprint="f",
        hour_base=2 if name == "b" else 0,
    )


def window_plan(generation: int = 1, window: str = "2026-03-01") -> WindowPlan:
    sources = {
        "a": source_plan("a", "history", 3),
        "b": source_plan("b", "history", 2),
        "c": source_plan("c", "../odd stream/", 1),
    }
    return WindowPlan(
        window=window,
        generation=generation,
        start=START,
        end=START + DAY,
        sources=sources,
        fingerprint="x",
    )


def record(ledger: Ledger, generation: int = 1, window: str = "2026-03-01") -> WindowPlan:
    plan = window_plan(generation, window)
    history = pa.concat_tables([with_ids(tasks([0, 4, 7]), "a"), with_ids(tasks([2, 7]), "b")])
    ledger.record_plan(plan, {"history": history, "../odd stream/": with_ids(tasks([4]), "c")})
    return plan


def test_an_empty_ledger(ledger: Ledger) -> None:
    assert ledger.windows() == []
    assert ledger.generations("w") == []
    assert ledger.latest_plan("w") is None
    assert ledger.trained("w") is None
    assert ledger.history() == []
    assert ledger.next_generation("w") == 1
    assert not ledger.forget("w")


def test_tasks_come_back_in_order(ledger: Ledger) -> None:
    plan = record(ledger)
    assert ledger.latest_plan("2026-03-01") == plan
    assert ledger.plan("2026-03-01", 1) == plan
    table = ledger.tasks("2026-03-01", 1)
    assert table["task_id"].to_pylist() == ["a/0", "b/0", "a/1", "c/0", "a/2", "b/1"]
    assert table["hour"].to_pylist() == [0, 2, 4, 4, 7, 7]
    task = Ledger.data_task(table, 1, plan)
    assert (task.task_id, task.source, task.generation) == ("b/0", "b", 1)
    assert (task.hour, task.hour_base, task.rows, task.cut) == (2, 2, 10, False)
    assert task.ranges[0].path == "f0"
    assert (task.data_from, task.data_to) == (START, START + DAY)


def test_windows_sort_as_text(ledger: Ledger) -> None:
    for key in ("2026-03-02", "2026-02-01_2026-03-01", "2026-03-01"):
        record(ledger, window=key)
    assert ledger.windows() == ["2026-02-01_2026-03-01", "2026-03-01", "2026-03-02"]


def test_generations_are_immutable(ledger: Ledger) -> None:
    record(ledger)
    with pytest.raises(FencedError, match="same time"):
        record(ledger)
    record(ledger, 2)
    assert ledger.generations("2026-03-01") == [1, 2]
    stored = {path.name for path in (ledger.folder / "2026-03-01").iterdir()}
    assert stored == {"g1", "g2", ".trees.lock"}


def test_a_writer_that_dies_at_any_moment_leaves_a_whole_generation_or_none(
    ledger: Ledger, tmp_path: Path
) -> None:
    found = []
    for died in deaths(tmp_path, lambda _: record(ledger)):
        found.append(ledger.latest_plan("2026-03-01"))
        g1 = ledger.folder / "2026-03-01" / "g1"
        if found[-1] is None:
            assert record(ledger) == window_plan()
            ledger.forget("2026-03-01")
        elif g1.exists():
            assert died.after_power_loss(g1, named=True) == tree_at(g1)
            assert died.after_power_loss(g1) in (None, tree_at(g1))
            ledger.forget("2026-03-01")
    assert found[0] is None
    assert found[-1] == window_plan()


def test_the_first_plan_records_the_homes_format(ledger: Ledger) -> None:
    record(ledger)
    mark = ledger.home.root / "format"
    assert mark.is_file()
    mark.unlink()
    with pytest.raises(ConfigError, match="another version"):
        record(ledger, 2)
    assert ledger.generations("2026-03-01") == [1]


@pytest.mark.parametrize("name", ["g", "gold", "7", "x1"])
def test_what_is_no_generation_is_left_alone(ledger: Ledger, name: str) -> None:
    record(ledger)
    (ledger.folder / "2026-03-01" / name).mkdir()
    assert ledger.generations("2026-03-01") == [1]
    assert ledger.next_generation("2026-03-01") == 2


def test_a_forgotten_window_is_not_marked_trained(ledger: Ledger) -> None:
    record(ledger)
    ledger.forget("2026-03-01")
    with pytest.raises(InfrastructureError, match=r"g1 is gone: the window was forgotten"):
        ledger.mark_trained("2026-03-01", 1, {})
    assert ledger.windows() == []


@pytest.mark.parametrize("name", ["plan.json", "history.arrow", "..%2Fodd%20stream%2F.arrow"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_half_a_generation_is_no_generation(ledger: Ledger, name: str, damage: str) -> None:
    record(ledger)
    record(ledger, 2)
    path = ledger.folder / "2026-03-01" / "g2" / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        half = content[: len(content) // 2]
        path.write_bytes(half if damage == "cut" else half + b"?" + content[len(half) + 1 :])
    assert ledger.latest_plan("2026-03-01") == window_plan(1)
    assert ledger.generations("2026-03-01") == [1]
    assert ledger.next_generation("2026-03-01") == 3
    with pytest.raises(DataError, match="damaged"):
        ledger.plan("2026-03-01", 2)


def test_the_newest_trained_generation(ledger: Ledger) -> None:
    record(ledger)
    record(ledger, 2)
    ledger.mark_trained("2026-03-01", 1, {"step": 7})
    assert ledger.trained("2026-03-01") == 1
    ledger.mark_trained("2026-03-01", 2, {})
    assert ledger.trained("2026-03-01") == 2
    facts = json.loads((ledger.folder / "2026-03-01" / "g1" / "trained.json").read_text())
    assert facts == {"window": "2026-03-01", "generation": 1, "step": 7}
    assert [entry["event"] for entry in ledger.history("2026-03-01")] == [
        "planned",
        "planned",
        "trained",
        "trained",
    ]


def test_forgetting_removes_one_window(ledger: Ledger) -> None:
    record(ledger)
    record(ledger, window="2026-03-02")
    assert ledger.forget("2026-03-01")
    assert ledger.windows() == ["2026-03-02"]
    assert ledger.latest_plan("2026-03-01") is None


@pytest.mark.parametrize("window", ["", ".", "..", "../../models", ".listings", "{outside}"])
def test_what_is_no_window_is_not_forgotten(ledger: Ledger, tmp_path: Path, window: str) -> None:
    record(ledger)
    for folder in (tmp_path / "models", tmp_path / "outside", ledger.folder / ".listings"):
        folder.mkdir()
    assert not ledger.forget(window.format(outside=tmp_path / "outside"))
    assert ledger.windows() == ["2026-03-01"]
    assert (tmp_path / "models").is_dir()
    assert (tmp_path / "outside").is_dir()
    assert (ledger.folder / ".listings").is_dir()


def test_replanning_records_the_same_tasks_under_the_next_generation(ledger: Ledger) -> None:
    with pytest.raises(DataError, match="no plan"):
        ledger.replan("2026-03-01")
    record(ledger)
    ledger.mark_trained("2026-03-01", 1, {})
    again = ledger.replan("2026-03-01")
    assert again == window_plan(2)
    assert ledger.plan("2026-03-01", 2) == again
    assert ledger.tasks("2026-03-01", 2) == ledger.tasks("2026-03-01", 1)
    assert ledger.trained("2026-03-01") == 1
    # A generation of its own: what happens to the older one's files does not reach it.
    (ledger.folder / "2026-03-01" / "g1" / "history.arrow").unlink()
    assert ledger.tasks("2026-03-01", 2).num_rows == 6
    assert ledger.replan("2026-03-01").generation == 3


def test_a_damaged_newest_generation_is_not_replanned(ledger: Ledger) -> None:
    record(ledger)
    record(ledger, 2)
    (ledger.folder / "2026-03-01" / "g2" / "history.arrow").write_bytes(b"?")
    assert ledger.replan("2026-03-01") == window_plan(3)
    assert ledger.generations("2026-03-01") == [1, 3]


def test_numbers_of_a_forgotten_window_are_not_used_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    ledger = Ledger(home, "ads")
    home.model("ads", "trial", "2026-03-01", 4).mkdir(parents=True)
    assert ledger.next_generation("2026-03-01") == 5
    assert ledger.next_generation("2026-03-02") == 1


def test_a_torn_tail_of_the_history_stays_alone(ledger: Ledger) -> None:
    ledger.note("w", "planned")
    log = ledger.folder / "log.jsonl"
    with log.open("a") as handle:
        handle.write('{"at": "2026", "window": "w", "eve')
    assert [entry["event"] for entry in ledger.history()] == ["planned"]
    ledger.note("w", "trained")
    assert [entry["event"] for entry in ledger.history("w")] == ["planned", "trained"]


def test_a_million_tasks_in_one_manifest(ledger: Ledger) -> None:
    count = 1_000_000
    rng = np.random.default_rng(1)
    names = np.char.add("date=2026-03-01/part-", np.arange(count).astype(str)).tolist()
    table = many_tasks(names, np.sort(rng.integers(0, 24, count)).astype(np.int32))
    plan = WindowPlan(
        window="2026-03-01",
        generation=1,
        start=START,
        end=START + DAY,
        sources={"a": source_plan("a", "history", count)},
        fingerprint="x",
    )
    started = time.process_time()
    ledger.record_plan(plan, {"history": with_ids(table, "a")})
    loaded = ledger.tasks("2026-03-01", 1)
    seconds = time.process_time() - started
    assert loaded.num_rows == count
    assert Ledger.data_task(loaded, count - 1, plan).task_id == f"a/{count - 1}"
    assert seconds < 10, "no Python object for each task"
