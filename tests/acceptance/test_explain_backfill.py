"""What `forebay explain --from --to` says a backfill costs is what `forebay run` then does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.jobs_here import jobs_in_this_process
from support.projects import Project, ads_pipeline, ads_project, history_source

pytestmark = pytest.mark.usefixtures("jobs_here")

DAYS = 5
ROWS = 1_000
SOURCES = ("history", "clicks")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Five days of data, the first three of them trained; tests below go on in their order."""
    project = ads_project(tmp_path_factory.mktemp("cost"), days=DAYS, rows=ROWS)
    with jobs_in_this_process():
        project.run("2026-03-01", "2026-03-03")
    return project


def explain(project: Project, first: str, last: str, *more: str) -> dict[str, Any]:
    ends = ("--from", first, "--to", last)
    return json.loads(project.forebay("explain", "ads", *ends, *more, "--output", "json").stdout)


def does(cost: dict[str, Any]) -> dict[str, str]:
    return {each["window"]: each["does"] for each in cost["windows"]}


def assert_came_true(cost: dict[str, Any], summary: dict[str, Any]) -> None:
    ran = [each for each in [summary["warm_start"], *summary["windows"]] if each]
    told = {each["window"]: each for each in cost["windows"]}
    assert list(told) == [each["window"] for each in ran]
    for each in ran:
        rows = {name: found["planned_rows"] for name, found in each["sources"].items()}
        assert rows == told[each["window"]]["rows"]
    assert cost["storage_calls"] == summary["storage_calls"]
    starts = ("train", "train again")
    assert [key for key, what in does(cost).items() if what in starts] == summary["trained_windows"]
    trained = [each for each in ran if each["window"] in summary["trained_windows"]]
    assert cost["rows"] == {
        name: sum(each["sources"][name]["served_rows"] for each in trained) for name in SOURCES
    }


def test_trained_new_and_planned_windows(trained: Project) -> None:
    trained.forebay("plan", "ads", "--from", "2026-03-05", "--to", "2026-03-05")
    before = sorted(trained.home.rglob("*"))
    cost = explain(trained, "2026-03-02", "2026-03-05")
    assert sorted(trained.home.rglob("*")) == before, "a look that writes"
    assert list(does(cost).values()) == ["skip", "skip", "train", "train"]
    assert cost["rows"] == {"history": 2 * ROWS, "clicks": 2 * ROWS}
    assert cost["pace"]["windows"] == 3
    assert cost["seconds"] > 0
    assert_came_true(cost, trained.run("2026-03-02", "2026-03-05"))


def test_trained_windows_cost_nothing_but_for_a_reprocess(trained: Project) -> None:
    cost = explain(trained, "2026-03-01", "2026-03-05")
    assert set(does(cost).values()) == {"skip"}
    assert (cost["storage_calls"], cost["rows"]) == (0, dict.fromkeys(SOURCES, 0))
    cost = explain(trained, "2026-03-03", "2026-03-04", "--reprocess")
    assert does(cost) == {"2026-03-03": "train again", "2026-03-04": "train again"}
    assert_came_true(cost, trained.run("2026-03-03", "2026-03-04", "--reprocess"))


def test_another_line_trains_what_the_first_one_planned(trained: Project) -> None:
    cost = explain(trained, "2026-03-01", "2026-03-02", "--line", "second")
    assert cost["storage_calls"] > 0, "it looks whether that is still the data"
    assert_came_true(cost, trained.run("2026-03-01", "2026-03-02", "--line", "second"))


def test_a_warm_start(tmp_path: Path) -> None:
    pipeline = ads_pipeline()
    pipeline["train"]["warm_start"] = "2026-03-01"
    pipeline["dataset"]["start"] = "2026-03-02"
    project = ads_project(tmp_path, days=4, rows=ROWS, pipeline=pipeline)
    cost = explain(project, "2026-03-02", "2026-03-02")
    assert list(does(cost)) == ["2026-03-01_2026-03-02", "2026-03-02"]
    assert cost["pace"]["windows"] == 0
    assert cost["seconds"] > cost["pace"]["job_seconds"], "the defaults"
    assert_came_true(cost, project.run("2026-03-02", "2026-03-02"))


def test_windows_that_have_to_wait(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=2, rows=ROWS)
    ready = {"ready": {"marker": "_SUCCESS", "wait": "10m", "late": "skip"}}
    options = {"path": "data/history", "window_path": "date={date}/*.parquet"}
    project.write_source("history", history_source(options=options, **ready))
    (project.files / "date=2026-02-28" / "_SUCCESS").touch()
    cost = explain(project, "2026-03-01", "2026-03-02")
    assert does(cost) == {"2026-03-01": "train", "2026-03-02": "wait"}
    reason = cost["windows"][1]["reason"]
    assert "source 'history' is not complete for 2026-03-01" in reason
    assert "a run waits 10m, then it continues without these rows" in reason
    assert cost["rows"] == {"history": ROWS, "clicks": ROWS}
    text = project.forebay("explain", "ads", "--from", "2026-03-01", "--to", "2026-03-02").stdout
    assert "waiting  2026-03-02: not counted above" in text


def test_the_table(trained: Project) -> None:
    ends = ("--from", "2026-03-04", "--to", "2026-03-04")
    text = trained.forebay("explain", "ads", *ends, "--reprocess").stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "window does history rows clicks rows"
    assert lines[1] == "2026-03-04 train again 1,000 1,000"
    assert "total 1 of 1 windows to train, 2,000 rows (history 1,000, clicks 1,000)" in lines
    assert re.search(r"time about .*measured on line main: 5 windows\)$", lines[-1])


def test_half_a_range_and_time_that_is_not_over(trained: Project) -> None:
    for words in (("--to", "2026-03-04"), ("--reprocess",)):
        ended = trained.forebay("explain", "ads", *words, check=False)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "a backfill begins somewhere: write --from" in ended.stderr
    cost = explain(trained, "2199-01-01", "2199-01-01")
    assert does(cost) == {"2199-01-01": "wait"}
    assert cost["windows"][0]["reason"].startswith("the window ends at 2199-01-02T00:00Z")
    assert cost["storage_calls"] == 0
