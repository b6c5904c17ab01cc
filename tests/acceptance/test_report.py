"""`forebay report`: text, JSON and the page, and what it says about files that are none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.summaries import summary


def forebay(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "forebay.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


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
    assert line.startswith(f"error: {path} is no summary of `forebay run")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    ended = forebay("report", str(tmp_path / "gone.json"))
    assert ended.returncode == 1
    assert ended.stderr == f"error: {tmp_path / 'gone.json'}: no such file\n"
