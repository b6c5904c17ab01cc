"""What a backfill will do, from ledger, chain and storage, without writing to any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from support.jobs import request, store_job
from support.links import AT
from support.model_lines import keep_checkpoint, record_link
from support.stages import Stages, noon, stages, table

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import Scan
from forebay.datatasks.sources.memory.source import MEMORY, MemorySource
from forebay.executors.backfill_cost import BackfillCost, Pace, backfill_cost, pace_of
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages.plan import record_window
from forebay.executors.stages.target import LineTarget
from forebay.home.job_id import range_job_id

ROWS = {"a": 2, "b": 1}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Stages]:
    """Five days; every day has two rows of one source and one of the other."""
    with stages(tmp_path, ("a", "b")) as found:
        MEMORY["a"] = table([noon(day) for day in range(5) for _ in range(2)])
        MEMORY["b"] = table([noon(day) for day in range(5)])
        yield found


def cost(
    project: Stages, first: int, last: int, *, reprocess: bool = False, line: str = "main"
) -> BackfillCost:
    before = sorted(project.home.root.rglob("*"))
    target = LineTarget(project.project, project.pipeline, project.home, line)
    windows = [project.window(number) for number in range(first, last + 1)]
    found = backfill_cost(target, windows, lambda: project.now, reprocess=reprocess)
    assert sorted(project.home.root.rglob("*")) == before
    return found


def plan(project: Stages, *days: int) -> None:
    for day in days:
        for source in ROWS:
            project.source(day, source)
        project.sink(day)


def train(project: Stages, *days: int, generation: int = 1) -> ModelChain:
    chain = ModelChain(project.home, "ads")
    fingerprint = model_fingerprint_of(project.pipeline, project.sources)
    for day in days:
        key, parent = project.window(day).key, chain.before(project.window(day))
        link = record_link(
            chain,
            key,
            ROWS,
            parent=parent.window if parent else None,
            generation=generation,
            seconds=6.0,
            model_fingerprint=fingerprint,
        )
        keep_checkpoint(chain, link)
    return chain


def does(found: BackfillCost) -> list[str]:
    return [each.does for each in found.windows]


def test_a_new_range_is_all_work(project: Stages) -> None:
    found = cost(project, 0, 2)
    assert (does(found), found.rows) == (["train"] * 3, {"a": 6, "b": 3})
    assert (found.windows[1].rows, found.pace) == (ROWS, Pace())
    assert found.seconds is not None
    assert found.seconds > Pace().job_seconds + 9 * Pace().row_seconds
    assert found.storage_calls == 2, "one look at each source"
    assert (found.pipeline, found.line) == ("ads", "main")


def test_trained_planned_and_new_windows(project: Stages) -> None:
    plan(project, 0, 1)
    train(project, 0)
    found = cost(project, 0, 2)
    assert (does(found), found.rows) == (["skip", "train", "train"], {"a": 4, "b": 2})
    assert found.pace.windows == 1
    assert found.seconds == pytest.approx(found.pace.job_seconds + 12.0, abs=2.0), "as the first"
    first, second, third = (each.window for each in found.windows)
    assert (found.named("skip"), found.named("train", "train again")) == ([first], [second, third])


def test_data_that_changed_is_trained(project: Stages) -> None:
    plan(project, 0)
    MEMORY["a"] = table([noon(0)])
    found = cost(project, 0, 0)
    assert (does(found), found.rows) == (["train"], {"a": 1, "b": 1})


def test_windows_that_are_left_as_they_are_on_other_data_are_named(project: Stages) -> None:
    plan(project, 0, 1)
    train(project, 0, 1)
    MEMORY["b"] = table([noon(0), noon(0), noon(1)])
    plan_of_another_line = LineTarget(project.project, project.pipeline, project.home, "second")
    for source in ROWS:
        project.source(0, source)
    record_window(plan_of_another_line.at(project.window(0)), asked_by="r#0", again=False)
    found = cost(project, 0, 1)
    assert does(found) == ["skip", "skip"]
    assert found.changed == [project.window(0).key, project.window(1).key], "and what is there now"
    assert cost(project, 0, 1, reprocess=True).changed == []


def test_windows_that_are_not_over_or_late_wait(project: Stages) -> None:
    project.now = project.window(2).end
    found = cost(project, 1, 3)
    assert [each.does for each in found.windows] == ["train", "train", "wait"]
    assert found.windows[2].reason
    assert found.rows == {"a": 4, "b": 2}
    project.late["b"] = project.window(1).start
    found = cost(project, 0, 3)
    assert [each.does for each in found.windows] == ["train", "wait", "wait", "wait"]
    assert "no marker" in found.windows[1].reason


def test_what_is_behind_a_late_window_waits_with_it(project: Stages) -> None:
    plan(project, 2)
    train(project, 2)
    project.now = project.window(1).end
    found = cost(project, 1, 2, reprocess=True)
    assert [each.does for each in found.windows] == ["train", "wait"]
    project.late["a"] = project.window(0).end
    late_then_trained = cost(project, 0, 1)
    assert [each.does for each in late_then_trained.windows] == ["train", "wait"]


def test_rows_nobody_counted_are_unknown(project: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = MemorySource.scan

    def uncounted(source: MemorySource, spans: Sequence[Interval]) -> Scan:
        found = scan(source, spans)
        at = found.tasks.schema.get_field_index("rows")
        rows = pa.nulls(found.tasks.num_rows, pa.int64())
        tasks = found.tasks.set_column(at, "rows", rows) if source.table == "a" else found.tasks
        return replace(found, tasks=tasks)

    monkeypatch.setattr(MemorySource, "scan", uncounted)
    assert cost(project, 0, 1).rows == {"a": None, "b": 2}


def took(chain: ModelChain, windows: Mapping[str, tuple[int, float]], seconds: float) -> None:
    """A job that trained windows, each of so many rows in so many seconds."""
    for key, (rows, of_window) in windows.items():
        record_link(chain, key, {"clicks": rows}, seconds=of_window)
    first, last = next(iter(windows)), [*windows][-1]
    job_id, ended_at = range_job_id("ads", "main", first, last), AT + timedelta(seconds=seconds)
    asked = request(chain.home, job_id, dict.fromkeys(windows, 1))
    store_job(asked, state="succeeded", submitted_at=AT, ended_at=ended_at)


def test_start_and_rows_are_told_apart(chain: ModelChain) -> None:
    """73 s for 600 rows: 70 s to start, 5 ms for each row; the first window traces the model."""
    windows = {"2026-03-01": (100, 41.5), "2026-03-02": (100, 0.5), "2026-03-03": (400, 2.0)}
    took(chain, windows, 73.0)
    pace = pace_of(chain)
    assert (pace.windows, pace.window_rows, pace.row_seconds) == (3, 200, pytest.approx(0.005))
    assert pace.job_seconds == pytest.approx(70.0)


def test_jobs_of_one_window_each_show_what_starting_takes(chain: ModelChain) -> None:
    for day in range(1, 4):
        took(chain, {f"2026-03-0{day}": (1_000, 5.0)}, 30.6)
    pace = pace_of(chain)
    assert pace.row_seconds == pytest.approx(0.005), "of these, as there are no others"
    assert pace.job_seconds == pytest.approx(25.6)


def test_a_line_whose_windows_had_no_rows(chain: ModelChain) -> None:
    took(chain, {"2026-03-01": (0, 1.0), "2026-03-02": (0, 1.0)}, 12.0)
    assert pace_of(chain).row_seconds == Pace().row_seconds
    assert pace_of(chain).window_rows == 0
