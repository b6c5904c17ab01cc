"""Files that change between plan and read are red and named; later files are reported."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import independent
from support.iceberg_tables import CATALOG, TABLE, append
from support.kills import no_process_left, pid_of, running, signal_role, wait_for_rows
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    ads_project,
    history_source,
    rows_of_day,
    with_column,
    write_history,
)
from support.there import there
from support.truth_rows import serves

from forebay.config.load import load_project
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.request import JobStatus
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.home.paths import Home

WINDOW = "2026-03-01"
ROWS = 2_000
MANY_ROWS = 120_000
BEFORE = FIRST_DAY - DAY
Change = Callable[[Project], Path]


def part(project: Project) -> Path:
    return project.files / f"date={BEFORE:%Y-%m-%d}" / "part-1.parquet"


def other_rows(path: Path) -> pa.Table:
    return rows_of_day(BEFORE, pq.read_metadata(path).num_rows, 900)


def same_count(project: Project) -> Path:
    path = part(project)
    pq.write_table(other_rows(path), path)
    return path


def more_rows(project: Project) -> Path:
    path = part(project)
    pq.write_table(pa.concat_tables([pq.read_table(path), other_rows(path)]), path)
    return path


def other_bounds(project: Project) -> Path:
    path = part(project)
    at = pa.array([BEFORE + timedelta(hours=7)] * (ROWS // 2), pa.timestamp("us", "UTC"))
    pq.write_table(other_rows(path).set_column(1, "at", at), path)
    return path


def segment(project: Project) -> Path:
    """Other rows below the name of a segment, which says their number."""
    path = min((project.log / "1").glob("*.arrow"))
    with pa.memory_map(str(path)) as stored:
        rows = pa.ipc.open_file(stored).read_all()
    price = np.arange(rows.num_rows, dtype=np.float64)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(with_column(rows, "price", price))
    return path


def data_file(project: Project) -> Path:
    """A data file of a table, rewritten by hand: Iceberg itself never does."""
    (path,) = project.root.glob("lake/**/*.parquet")
    pq.write_table(pq.read_table(path), path, compression="none")
    return path


def file_project(root: Path) -> Project:
    return ads_project(root, rows=ROWS)


def table_project(root: Path) -> Project:
    project = ads_project(root, rows=ROWS)
    append(root, rows_of_day(BEFORE, ROWS, seed=5))
    options = {"catalog": CATALOG, "table": TABLE}
    project.write_source("history", history_source(kind="iceberg", options=options))
    return project


def train_as_planned(project: Project) -> JobStatus:
    """What Airflow does after the sink: the newest plan is trained, and no source looked at."""
    declared = load_project(project.root / "config")
    pipeline = declared.pipeline("ads")
    window = pipeline.dataset.grid.parse(WINDOW)
    target = LineTarget(declared, pipeline, Home(project.home), "main").at(window)
    found = submit_window(target, claim="run#0", again=False, previous=PreviousRun.NONE)
    assert found.state == "submitted", found
    return JobHandle(Home(project.home), found.job_id, found.epoch).wait(120)


def why(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.forebay("why", "ads", WINDOW, "--output", "json").stdout))


@pytest.mark.guarantee(
    "a file is changed or replaced after its window was planned, or while it is read",
    "red with the file, both versions and what to do; the same command plans the window again; "
    "read again: the whole window",
)
@pytest.mark.parametrize(
    ("make", "change"),
    [
        (file_project, same_count),
        pytest.param(file_project, more_rows, marks=pytest.mark.chaos),
        pytest.param(file_project, other_bounds, marks=pytest.mark.chaos),
        (file_project, segment),
        (table_project, data_file),
    ],
)
@pytest.mark.usefixtures("jobs_here")
def test_a_changed_file_is_red_and_the_same_window_is_planned_anew(
    tmp_path: Path, make: Callable[[Path], Project], change: Change
) -> None:
    project = make(tmp_path)
    project.forebay("plan", "ads", "--from", WINDOW, "--to", WINDOW)
    path = change(project)
    status = train_as_planned(project)
    assert status.state == "failed", "rows of another file than the planned one were trained"
    error = there(status.error)
    message = error.message
    assert (error.error, path.name in message) == ("DataError", True), message
    assert f"{path.stat().st_size} bytes" in message
    assert "planned" in message
    way_out = f"run window {WINDOW} again" if make is file_project else "put the old one back"
    assert way_out in message
    assert not serves(project.home, "ads")
    assert "whole run in Airflow" in why(project)["next"], "its training alone reads the old plan"
    if make is table_project:
        return  # its manifest still says what it was
    summary = project.run(WINDOW, WINDOW)
    assert summary["windows"][0]["generation"] == 2
    assert summary["rows_agree"]
    assert summary["seen"]["history"] == independent.parquet_sums(project.files)


@pytest.mark.guarantee(
    "a file is replaced while a process has it open",
    "red with the file, both versions and what to do; the same command plans the window again; "
    "read again: the whole window",
)
def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    """The process that reads it keeps the old file open, and would never see the new one."""
    pipeline = ads_pipeline(buffers={"rows_max": 2048, "chunk_rows": 1024, "align_hours": 24})
    project = ads_project(tmp_path, rows=ROWS, pipeline=pipeline)
    part(project).unlink()
    write_history(project.files, BEFORE, MANY_ROWS, files=1)
    path = part(project).with_name("part-0.parquet")
    with running(project, "run", "ads", "--from", WINDOW, "--to", WINDOW) as run:
        wait_for_rows(project, WINDOW, 2 * 1024, run)
        signal_role(project, "trainer", signal.SIGSTOP)
        reader = psutil.Process(pid_of(project, "data-0"))
        opened = {Path(each.path) for each in reader.open_files()}
        assert path in opened, "the file is read to its end already"
        replacement = path.with_name("next.tmp")
        pq.write_table(rows_of_day(BEFORE, MANY_ROWS, seed=77), replacement)
        replacement.rename(path)
        signal_role(project, "trainer", signal.SIGCONT)
        output, _ = run.communicate(timeout=120)
    assert run.returncode == 3, output
    assert "part-0.parquet" in output
    assert "changed" in output
    assert no_process_left(project)
    assert not serves(project.home, "ads")
    summary = project.run(WINDOW, WINDOW)
    assert summary["seen"]["history"] == independent.parquet_sums(project.files)


@pytest.mark.guarantee(
    "files arrive or change after their window was trained", "nothing; a reprocess reads them"
)
@pytest.mark.usefixtures("jobs_here")
def test_files_that_come_and_change_after_their_window_was_trained(tmp_path: Path) -> None:
    project = file_project(tmp_path)
    project.run(WINDOW, WINDOW)
    clean = why(project)
    assert (clean["state"], clean["next"]) == ("trained", "")
    pq.write_table(rows_of_day(BEFORE, 50, seed=8), part(project).with_name("part-9.parquet"))
    same_count(project)
    found = why(project)
    assert found["state"] == "trained"
    assert "1 new (date=2026-02-28/part-9.parquet)" in found["reason"]
    assert "1 changed (date=2026-02-28/part-1.parquet)" in found["reason"]
    assert found["command"] == f"forebay run ads --from {WINDOW} --to {WINDOW} --reprocess"
    report = ("report", "ads", "--from", WINDOW, "--to", WINDOW, "--output", "json")
    (note,) = json.loads(project.forebay(*report).stdout)["notes"]
    assert "part-9.parquet" in note
    taken = project.run(WINDOW, WINDOW, "--reprocess")
    assert taken["windows"][0]["sources"]["history"]["trained_rows"] == ROWS + 50
    assert taken["seen"]["history"] == independent.parquet_sums(project.files)
    assert why(project)["next"] == ""
    assert json.loads(project.forebay(*report).stdout)["notes"] == []


@pytest.mark.guarantee(
    "the cache of footers is damaged",
    "nothing; footers are read again, and the log says so; read again: footers",
)
def test_a_second_process_reads_only_the_footers_that_are_new(tmp_path: Path) -> None:
    pipeline = ads_pipeline()
    pipeline["dataset"]["streams"] = {"history": {"sources": ["history"]}}
    pipeline["dataset"]["window"] = "1h"
    project = Project(tmp_path, pipeline)
    project.write_source("history", history_source())
    project.write_pipeline()
    for hour in range(48):
        write_hour(project, FIRST_DAY + timedelta(hours=hour))
    planned = [line.split()[0] for line in plan_hours(project, 48) if line.startswith("2026")]
    assert planned == [f"2026-03-0{1 + n // 24}T{n % 24:02}" for n in range(48)]
    assert calls(project, 48) == 1, "one listing, and nothing is new"
    write_hour(project, FIRST_DAY + timedelta(hours=48))
    assert calls(project, 49) == 1 + 1, "one listing and one footer"
    [kept] = (project.home / "cache" / "footers").iterdir()
    kept.write_bytes(kept.read_bytes()[:-100])
    assert calls(project, 49) == 1 + 49, "a damaged cache is read by nobody"
    assert calls(project, 49) == 1


def write_hour(project: Project, hour: datetime) -> None:
    rows = rows_of_day(FIRST_DAY, 24, seed=hour.hour).slice(0, 3)
    at = pa.array([hour + timedelta(minutes=n) for n in range(3)], pa.timestamp("us", "UTC"))
    project.files.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.set_column(1, "at", at), project.files / f"{hour:%Y%m%d%H}.parquet")


def plan_hours(project: Project, hours: int) -> list[str]:
    last = FIRST_DAY + timedelta(hours=hours - 1)
    span = ("--from", f"{WINDOW}T00", "--to", f"{last:%Y-%m-%dT%H}")
    return project.forebay("plan", "ads", *span).stdout.splitlines()


def calls(project: Project, hours: int) -> int:
    return int(plan_hours(project, hours)[-1].split(", ")[-1].split()[0])
