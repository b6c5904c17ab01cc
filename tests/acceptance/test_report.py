"""`forebay report`: text, JSON and the page, and what it says about files that are no summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.jobs_here import jobs_in_this_process
from support.projects import Project, ads_project
from support.summaries import summary

from forebay.cli import run

Trained = tuple[Project, dict[str, Any]]


def test_a_summary_is_told_as_text_and_json_and_in_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, elsewhere = tmp_path / "run.json", tmp_path / "page.html"
    path.write_text(json.dumps(summary()))
    assert run(["report", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"report  {path.with_suffix('.html')}"
    assert "window 2013-06-01  generation 1  batch 900  stream 900  dead 7" in lines
    assert path.with_suffix(".html").read_text().startswith("<!doctype html>")
    assert run(["report", str(path), "--html", str(elsewhere), "--output", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["html"] == str(elsewhere)
    assert value["rows_agree"] is True
    assert [window["window"] for window in value["windows"]] == ["2013-06-01", "2013-06-02"]
    assert elsewhere.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"windows": 3}', '{"windows": [{}]}'])
def test_another_file_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    assert run(["report", str(path)]) == 1
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert shown.out == ""
    assert line.startswith(f"error: {path} is not a summary of `forebay run")
    path.unlink()
    assert run(["report", str(path)]) == 1
    way_out = "for windows of a pipeline add --from and --to"
    assert capsys.readouterr().err == f"error: {path}: no such file; {way_out}\n"


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
    part = ("--from", "2026-03-02", "--to", "2026-03-02", "--output", "json")
    value = json.loads(project.forebay("report", "ads", *part).stdout)
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
