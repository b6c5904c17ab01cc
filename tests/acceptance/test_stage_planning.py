"""`forebay stage timer|source|sink`: the planning of windows as Airflow's tasks call it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd  # noqa: F401 - the commands start Arrow without it, for this process too
import pyarrow.parquet as pq
import pytest
from support.file_watch import Reads, watched
from support.model_lines import mark_trained
from support.projects import (
    COLUMNS,
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    ads_project,
    clicks_source,
    rows_of_day,
    write_log,
)

from forebay.cli import run
from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.stages.results import SinkResult, SourceResult, TimerResult
from forebay.home.paths import Home

pytestmark = pytest.mark.usefixtures("jobs_here")

HOURS = 48
WINDOWS = [f"{FIRST_DAY + timedelta(hours=hour):%Y-%m-%dT%H}" for hour in range(HOURS)]
SOURCES = ("history", "impressions", "clicks")
ROWS_PER_DAY = 480
IMPRESSION_FILES = 2 * 4


def hourly_project(root: Path) -> Project:
    """48 hourly windows over files by path with markers, files by time, and a log."""
    pipeline = ads_pipeline()
    pipeline["dataset"]["window"] = "1h"
    pipeline["dataset"]["streams"] = {name: {"sources": [name]} for name in SOURCES}
    project = Project(root, pipeline)
    for day in range(2):
        start = FIRST_DAY + day * DAY
        write_log(project.log, start, ROWS_PER_DAY, seed=day)
        write_hours(project, start, seed=day + 2)
    paths = {"path": "data/history", "window_path": "date={date}/hour={hour}/*.parquet"}
    files: dict[str, Any] = {"kind": "parquet", "columns": COLUMNS, "event_time": "at"}
    marked = {"ready": {"marker": "_SUCCESS"}}
    project.write_source("history", {**files, **marked, "options": paths})
    project.write_source("impressions", {**files, "options": {"path": "data/impressions"}})
    project.write_source("clicks", clicks_source())
    project.write_pipeline()
    return project


def write_hours(project: Project, day: datetime, seed: int) -> None:
    """A day of rows, hour by hour with a marker, and four files of mixed hours."""
    table = rows_of_day(day, ROWS_PER_DAY, seed)
    hours = [at.hour for at in table["at"].to_pylist()]
    for hour in range(24):
        folder = project.files / f"date={day:%Y-%m-%d}" / f"hour={hour:02}"
        folder.mkdir(parents=True)
        part = table.filter([found == hour for found in hours])
        pq.write_table(part, folder / "part.parquet")
        (folder / "_SUCCESS").touch()
    impressions = project.root / "data" / "impressions"
    impressions.mkdir(exist_ok=True)
    step = ROWS_PER_DAY // 4
    for number in range(4):
        part = table.slice(number * step, step)
        pq.write_table(part, impressions / f"{day.day}-{number}.parquet")


class Caller:
    """Stages in this process, since starting 400 of them would take minutes."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.errors = ""

    def __call__(self, *arguments: str, code: int = 0) -> Any:
        found = run(["stage", *arguments])
        captured = self.capsys.readouterr()
        self.errors = captured.err
        assert found == code, captured.err
        if code:
            assert captured.out == ""
            return None
        (line,) = captured.out.splitlines()
        return json.loads(line)

    def source(self, window: str, source: str, by: str, *more: str) -> SourceResult:
        arguments = ("source", "ads", window, source, "--asked-by", by, *more)
        return SourceResult.model_validate(self(*arguments))

    def sink(self, window: str, by: str, *more: str) -> SinkResult:
        return SinkResult.model_validate(self("sink", "ads", window, "--asked-by", by, *more))


@pytest.fixture
def stage(capsys: pytest.CaptureFixture[str]) -> Caller:
    return Caller(capsys)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return enter(ads_project(tmp_path / "project", days=3, rows=500), monkeypatch)


def enter(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("FOREBAY_HOME", str(project.home))
    return project


def backfill(
    stage: Caller, project: Project, order: Sequence[str], clear: int, *more: str
) -> tuple[Reads, list[SourceResult], list[SinkResult]]:
    """All windows through source and sink in one order; each call names those still waiting."""
    found, sunk, waiting = [], [], {name: list(order) for name in SOURCES}
    with watched(project.root / "data") as reads:
        for window in order:
            for source in SOURCES:
                asked = [{"window": w, "asked_by": f"run {w}#{clear}"} for w in waiting[source]]
                others = json.dumps([each for each in asked if each["window"] != window])
                by = f"run {window}#{clear}"
                found.append(stage.source(window, source, by, "--asked", others))
                waiting[source] = [each for each in waiting[source] if each != window]
            sunk.append(stage.sink(window, f"run {window}#{clear}", *more))
    return reads, found, sunk


@pytest.mark.timeout(300)
def test_48_windows_cost_one_scan_of_each_source_in_any_order(
    tmp_path: Path, stage: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly = enter(hourly_project(tmp_path / "hourly"), monkeypatch)
    first_reads, first, sunk = backfill(stage, hourly, WINDOWS, 0)
    assert {result.state for result in first} == {"listed"}
    scans = [result for result in first if result.storage_calls]
    assert [(result.window, result.source) for result in scans] == [
        (WINDOWS[0], name) for name in SOURCES
    ]
    assert {result.windows_scanned for result in first} == {HOURS}
    rows = {name: sum(each.rows[name] or 0 for each in sunk) for name in SOURCES}
    assert rows == dict.fromkeys(SOURCES, 2 * ROWS_PER_DAY)
    assert len([path for path in first_reads.folders if path == "clicks"]) == 1
    assert Listings(Ledger(Home(hourly.home), "ads")).windows() == {}
    calls = sum(result.storage_calls for result in first)
    # `forebay plan`, with a home of its own, finds the same with as many calls.
    other = hourly.root / "other"
    done = Project(hourly.root, home_folder=other).forebay(
        "plan", "ads", "--from", "2026-03-01", "--to", "2026-03-02"
    )
    assert f"48 windows, 0 of them planned before, {calls} storage calls" in done.stdout
    ledger, planned = Ledger(Home(hourly.home), "ads"), Ledger(Home(other), "ads")
    for window in WINDOWS:
        assert planned.latest_plan(window) == ledger.latest_plan(window)
        assert planned.tasks(window, 1).equals(ledger.tasks(window, 1))

    for window in WINDOWS:
        mark_trained(ledger, window, 1)
    shuffled = random.Random(7).sample(WINDOWS, HOURS)
    again_reads, again, sunk_again = backfill(stage, hourly, shuffled, 1, "--again")
    footers = [path for path in first_reads.opened if path.endswith(".parquet")]
    assert len(footers) == HOURS + IMPRESSION_FILES
    assert sum(result.storage_calls for result in again) == calls - len(footers)
    assert len([result for result in again if result.storage_calls]) == len(SOURCES)
    # Of files by path only footers were needed; in those of mixed hours rows are cut again.
    needed = {path for path in first_reads.opened if not path.startswith("history/")}
    assert set(again_reads.opened) == needed
    assert set(again_reads.read) == needed
    assert again_reads.folders == first_reads.folders
    assert {(each.generation, each.recorded) for each in sunk_again} == {(1, False)}


@pytest.mark.timeout(300)
def test_pipelines_on_the_same_sources_share_their_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at the same moment, and one afterwards: footers are read once, folders are listed."""
    hourly = enter(hourly_project(tmp_path / "hourly"), monkeypatch)
    for name in ("offers", "later"):
        (hourly.root / f"config/pipelines/{name}.yaml").write_text(json.dumps(hourly.pipeline))

    def calls(*names: str) -> list[int]:
        span = ("--from", "2026-03-01", "--to", "2026-03-02")
        plans = [hourly.start("plan", name, *span) for name in names]
        printed = [plan.communicate(timeout=120)[0] for plan in plans]
        return [int(text.split()[-3]) for text in printed]

    both = sum(calls("ads", "offers"))  # each may be the first at another source
    with watched(hourly.root / "data") as reads:
        [listings] = calls("later")
    assert both == 2 * listings + HOURS + IMPRESSION_FILES
    # Of files by path only footers were needed; in those of mixed hours rows are cut again.
    assert not [path for path in reads.opened if path.startswith("history/")]


def test_a_window_step_by_step(project: Project, stage: Caller) -> None:
    timer = TimerResult.model_validate(stage("timer", "ads", "2026-03-01"))
    assert timer.state == "open"
    assert stage.source("2026-03-01", "history", "r#0", "--ready").state == "listed"
    for name in ("history", "clicks"):
        assert stage.source("2026-03-01", name, "r#0").rows == 500
    assert "500 rows in 2 tasks (1 storage call now)" in stage.errors
    assert stage.sink("2026-03-01", "r#0").rows == {"history": 500, "clicks": 500}
    assert "generation 1 is recorded" in stage.errors
    assert not stage.sink("2026-03-01", "r#0", "--again").recorded
    timer = TimerResult.model_validate(stage("timer", "ads", "2026-03-01"))
    assert timer.reason == "it is planned as generation 1, but not trained"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("timer", "ads", "2026-02-01"), "ads.yaml:1:1: window 2026-02-01 is before the dataset's"),
        (("timer", "ads", "2026-03-01T00"), "not a window of size 1d"),
        (("timer", "adz", "2026-03-01"), "did you mean ads?"),
        (("source", "ads", "2026-03-01", "history"), "Missing option '--asked-by'"),
        (("source", "ads", "2026-03-01", "views", "--asked-by", "r#0"), "no source 'views'"),
        (
            ("source", "ads", "2026-03-01", "clicks", "--asked-by", "r#0", "--asked", "[1]"),
            "--asked must be a JSON list of {window, asked_by}",
        ),
        (("sink", "ads", "2026-03-01", "--asked-by", "r#0"), "source 'history' was not listed"),
        (
            ("submit", "ads", "2026-03-01", "--claim", "c", "--previous", "gone"),
            "--previous must be one of none, active, done, failed",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_is_the_caller_s_to_change(
    stage: Caller, arguments: tuple[str, ...], message: str
) -> None:
    stage(*arguments, code=1)
    assert message in stage.errors
    assert stage.errors.startswith("error: ")


@pytest.mark.usefixtures("project")
def test_a_listing_from_before_the_run_was_made_is_no_answer(stage: Caller) -> None:
    def listed(since: datetime) -> int:
        made = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return stage.source("2026-03-01", "history", "ads/r#0", "--since", made).storage_calls

    began = datetime.now(UTC)
    assert listed(began) > 0
    assert listed(began) == 0, "a retry"
    again = datetime.now(UTC)
    assert listed(again) > 0, "the run was deleted, and made again with the same id"


def test_two_processes_at_a_time_scan_once(project: Project) -> None:
    windows = ("2026-03-01", "2026-03-02")
    calls = [
        project.start(
            *("stage", "source", "ads", window, "history", "--asked-by", f"{window}#0"),
            *("--asked", json.dumps([{"window": w, "asked_by": f"{w}#0"} for w in windows])),
        )
        for window in windows
    ]
    outputs = [call.communicate(timeout=120)[0] for call in calls]
    assert [call.returncode for call in calls] == [0, 0], outputs
    lines = [next(line for line in text.splitlines() if line[:1] == "{") for text in outputs]
    found = [SourceResult.model_validate_json(line) for line in lines]
    assert sorted(bool(result.storage_calls) for result in found) == [False, True]
    assert {result.rows for result in found} == {500}


COMMANDS = """
import json, sys
from forebay.cli import run
for command in json.loads(sys.argv[1]):
    assert run(command) == 0
heavy = {"tensorflow", "scipy", "pandas", "pyiceberg", "kafka", "matplotlib", "airflow", "grpc"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


def test_stages_a_run_and_its_judgement_stay_light(project: Project) -> None:
    asked = ("2026-03-01", "--asked-by", "r#0")
    stages = [
        ("timer", "ads", "2026-03-01"),
        ("source", "ads", *asked, "history", "--ready"),
        ("source", "ads", *asked, "history"),
        ("source", "ads", *asked, "clicks"),
        ("sink", "ads", *asked),
    ]
    run = ("run", "ads", "--from", "2026-03-01", "--to", "2026-03-01")
    evaluate = ("evaluate", "ads", "2026-03-01")
    commands = [*(("stage", *stage) for stage in stages), run, ("stage", *evaluate)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMANDS, json.dumps(commands)],
        cwd=project.root,
        env=project.env(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
