"""Rows, metrics and pace of windows, read from what their jobs write."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.jobs import request, store_job
from support.links import judgement, link
from support.model_lines import record

from examples.demo.kills import Kills
from examples.demo.trained_rows import Trained, TrainedRows, running_jobs
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import State
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.database.format import record_format
from forebay.home.paths import Home

NOW = datetime(2013, 7, 1, tzinfo=UTC)
WARM = "2013-01-01_2013-06-01"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    record_format(Home(tmp_path))
    return Home(tmp_path)


def job(home: Home, name: str, state: State, progress: Progress | None = None) -> None:
    store_job(request(home, name, {}, name.partition(".")[0]), state)
    if progress is not None:
        (home.job(name) / "progress.json").write_text(progress.model_dump_json())


def trained(home: Home, window: str, parent: str, rows: int) -> Link:
    chain = ModelChain(home, "flights")
    counts = ({"clicks": 1000 + rows}, {"clicks": 1000})
    record(chain, link(parent, {"clicks": 1000}))
    found = link(window, *counts, parent=(parent, 1), steps=10)
    record(chain, found)
    return found


def test_rows_come_from_the_job_until_there_is_a_model(home: Home) -> None:
    rows = TrainedRows(home, "flights", "main", "mixture")
    assert rows.of("2013-06-01") == Trained()
    going_on = Progress(window=WARM, rows={"clicks": 70}, rows_per_second=9_000)
    job(home, "flights.main.2013-06-01.g1", "running", going_on)
    assert rows.of("2013-06-01") == Trained({"clicks": 70}, note="warm start, 9,000 rows/s")
    assert rows.of("2013-06-02") == Trained()
    found = trained(home, "2013-06-01", WARM, 20)
    assert rows.of("2013-06-01") == Trained({"clicks": 20})
    metrics = {"mixture": {"auc_fresh": 0.75, "auc_true": 0.5}, "stream": {}}
    chain = ModelChain(home, "flights")
    chain.judge(found, judgement(found, metrics=metrics))
    assert rows.of("2013-06-01") == Trained({"clicks": 20}, 0.75)
    chain.judge(found, judgement(found))
    assert rows.of("2013-06-01").auc == 0.75  # what is done is read once


def test_jobs_of_the_pipeline_by_how_they_stand(home: Home) -> None:
    told = Progress(window="2013-06-01")
    job(home, "flights.main.a", "running", told)
    job(home, "flights.main.b", "running")
    job(home, "flights.main.c", "succeeded", told)
    job(home, "flights-eu.main.a", "running", told)
    assert [each.job_id for each, _ in running_jobs(home, "flights")] == ["flights.main.a"]
    kills = Kills(home, "flights", 1000, lambda _: None)
    job(home, "flights.main.a", "running", Progress(window=WARM, rows={"clicks": 149}))
    kills.look()
    job(home, "flights.main.a", "running", Progress(window=WARM, rows={"clicks": 990}))
    kills.look()
    assert kills.struck == []
