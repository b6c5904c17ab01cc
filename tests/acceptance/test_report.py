"""`forebay report`: text, JSON and the page, and what it says about files that are no summary."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.jobs_here import jobs_in_this_process
from support.projects import Project, ads_project, called
from support.summaries import summary

Trained = tuple[Project, dict[str, Any]]


def forebay(*arguments: str) -> subprocess.CompletedProcess[str]:
    return called(arguments, Path.cwd(), os.environ.copy())


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(summary()))
    return path


def test_text_and_the_page_beside_the_summary(written: Path) -> None:
    ended = forebay("report", str(written))
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    page = written.with_suffix(".html")
    assert lines[-1] == f"report  {page}"
    assert "window 2013-06-01  generation 1  batch 900  stream 900  dead 7" in lines
    assert page.read_text().startswith("<!doctype html>")


def test_json_and_a_page_elsewhere(written: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = forebay("report", str(written), "--html", str(page), "--output", "json")
    assert ended.returncode == 0, ended.stderr
    value = json.loads(ended.stdout)
    assert value["html"] == str(page)
    assert value["rows_agree"] is True
    assert [window["window"] for window in value["windows"]] == ["2013-06-01", "2013-06-02"]
    assert page.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"windows": 3}', '{"windows": [{}]}'])
def test_another_file_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    ended = forebay("report", str(path))
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"error: {path} is not a summary of `forebay run")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    ended = forebay("report", str(tmp_path / "gone.json"))
    assert ended.returncode == 1
    way_out = "for windows of a pipeline add --from and --to"
    assert ended.stderr == f"error: {tmp_path / 'gone.json'}: no such file; {way_out}\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    project = ads_project(tmp_path_factory.mktemp("trained"), days=3, rows=600)
    with jobs_in_this_process():
        return project, project.run("2026-03-01", "2026-03-03")


def test_windows_are_told_the_same_whoever_trained_them(trained: Trained) -> None:
    project, ran = trained
    ended = project.forebay("report", "ads", "--from", "2026-03-01", "--to", "2026-03-03")
    page = Path(ended.stdout.splitlines()[-1].removeprefix("report  "))
    assert page == project.home / "reports" / "ads.main.2026-03-01..2026-03-03.html"
    assert "<svg" in page.read_text()
    told = json.loads(page.with_suffix(".json").read_text())
    for key in ("windows", "warm_start", "seen", "rows_agree", "rows_line", "model", "pooled"):
        assert told[key] == ran[key], key
    assert told["reused_windows"] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert told["restarts"] == ran["restarts"]
    series = told["windows"][1]["series"]
    assert series["rows"]["clicks"][-1] == 600
    assert series["lag_seconds"][-1] == 0


def test_a_part_of_the_windows(trained: Trained) -> None:
    project, _ = trained
    ended = project.forebay(
        "report", "ads", "--from", "2026-03-02", "--to", "2026-03-02", "--output", "json"
    )
    value = json.loads(ended.stdout)
    assert [window["window"] for window in value["windows"]] == ["2026-03-02"]
    assert value["model"] == ""  # a run of several windows exports the last one's


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "2026-03-01"), "write both --from and --to"),
        (("--to", "2026-03-01"), "write both --from and --to"),
        (("--from", "2026-03-03", "--to", "2026-03-04"), "window 2026-03-04 of pipeline 'ads' is"),
        (("--from", "2026-02-01", "--to", "2026-03-01"), "before the dataset's start"),
    ],
)
def test_windows_that_cannot_be_told(
    trained: Trained, words: tuple[str, ...], message: str
) -> None:
    project, _ = trained
    ended = project.forebay("report", "ads", *words, check=False)
    assert ended.returncode == 1
    assert message in ended.stderr
