"""A stream's window is over `close_delay` after its end: `run` sleeps, a stage says how long."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.projects import DAY, Project, ads_pipeline, clicks_source, rows_of_day, write_log

from forebay.datatasks.sources.log.writer import LogWriter

ROWS = 400
LATE = 30


def stream_project(root: Path, day: datetime, over: datetime) -> Project:
    """A stream alone, whose window of a day that has ended is over at an instant of today."""
    key = f"{day:%Y-%m-%d}"
    pipeline = ads_pipeline()
    pipeline["dataset"] |= {"start": key, "streams": {"clicks": {"sources": ["clicks"]}}}
    project = Project(root, pipeline)
    write_log(project.log, day, ROWS)
    delay = over - (day + DAY)
    options = {"path": "data/clicks", "close_delay": f"{int(delay.total_seconds())}s"}
    ready = {"wait": "0s", "late": "fail"}
    project.write_source("clicks", clicks_source(options=options, ready=ready, starts=key))
    project.write_pipeline()
    return project


@pytest.fixture
def yesterday() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - DAY


@pytest.mark.guarantee(
    "a record of a stream arrives shortly after its window's end (`close_delay`)",
    "nothing; it is trained on in the window of its time",
)
def test_run_sleeps_and_takes_what_comes_meanwhile(tmp_path: Path, yesterday: datetime) -> None:
    """The sleep spends nothing of `ready.wait`, which is none here."""
    key = f"{yesterday:%Y-%m-%d}"
    over = (datetime.now(UTC) + timedelta(seconds=15)).replace(microsecond=0)
    project = stream_project(tmp_path, yesterday, over)
    summary = tmp_path / "summary.json"
    running = project.start("run", "ads", "--from", key, "--to", key, "--summary", str(summary))
    try:
        assert running.stdout is not None
        told = f"records arrive until {over.isoformat()}"
        assert any(told in line for line in running.stdout), "it ended without a wait"
        late = rows_of_day(yesterday, LATE, seed=9)
        LogWriter(project.log, 0).append(late, yesterday + DAY - timedelta(milliseconds=1))
        assert datetime.now(UTC) < over
        printed, _ = running.communicate(timeout=120)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, printed
    found = json.loads(summary.read_text())["windows"][0]["sources"]["clicks"]
    assert (found["trained_rows"], found["late_rows"]) == (ROWS + LATE, 0)


def test_a_stage_waits_without_spending_the_wait(tmp_path: Path, yesterday: datetime) -> None:
    key = f"{yesterday:%Y-%m-%d}"
    over = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    project = stream_project(tmp_path, yesterday, over)
    asked = ("stage", "source", "ads", key, "clicks", "--asked-by", "run")
    found = json.loads(project.forebay(*asked).stdout)
    assert found["state"] == "waiting"
    assert datetime.fromisoformat(found["deadline"]) == over
    why = project.forebay("why", "ads", key).stdout
    assert f"it is checked from {over:%Y-%m-%dT%H:%M:%SZ} on" in why
