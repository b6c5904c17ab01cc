"""Bad data is red, or dead letters by the source's policy; never green and silent."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.airflow_data import cut_footer, flip_middle
from support.parquet_files import contradict_types, null_labels
from support.projects import DAY, FIRST_DAY, Project, ads_project, history_source
from support.truth_rows import serves, stored_of

pytestmark = pytest.mark.usefixtures("jobs_here")

BEFORE = FIRST_DAY - DAY
ROWS = 2_000


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return ads_project(tmp_path, days=1, rows=ROWS)


def part(project: Project, number: int) -> Path:
    return project.files / f"date={BEFORE:%Y-%m-%d}" / f"part-{number}.parquet"


def failed(project: Project) -> Any:
    return project.forebay("run", "ads", "--from", "2026-03-01", "--to", "2026-03-01", check=False)


def run(project: Project) -> dict[str, Any]:
    return project.run("2026-03-01", "2026-03-01")


@pytest.mark.guarantee("a Parquet file is corrupt", "red, or dead letters by policy")
@pytest.mark.parametrize(
    "damage", [cut_footer, flip_middle, partial(contradict_types, column="at")]
)
@pytest.mark.usefixtures("footer_children")
def test_a_corrupt_file_is_red_and_named(project: Project, damage: Any) -> None:
    damage(part(project, 1))
    done = failed(project)
    assert done.returncode == 3, done.stderr
    assert "part-1.parquet" in done.stderr
    assert not serves(project.home, "ads")
    project.write_source("history", history_source(bad_rows="dead_letter"))
    summary = run(project)
    source = summary["windows"][0]["sources"]["history"]
    assert source["dead_letter_rows"] > 0
    assert source["served_rows"] == source["trained_rows"] + source["dead_letter_rows"]
    assert source["planned_rows"] == source["served_rows"]
    letters = json.loads(project.forebay("dead", "show", "ads", "--output", "json").stdout)
    assert {Path(letter["file"]).name for letter in letters} == {"part-1.parquet"}
    assert sum(letter["rows"] for letter in letters) == source["dead_letter_rows"]
    whole_range = max(letter["rows"] for letter in letters) > 1
    assert whole_range == (damage is flip_middle)
    assert stored_rows(project) == source["dead_letter_rows"]


def stored_rows(project: Project) -> int:
    """Rows that the stored letters stand for; the host that trained the window has none left."""
    assert not list((project.home / "training").rglob("dead"))
    folder = stored_of(project.home, "ads", "2026-03-01", "dead_letters")
    assert folder is not None
    (file,) = folder.iterdir()
    return sum(json.loads(line)["rows"] for line in file.read_bytes().splitlines())


@pytest.mark.guarantee("a row's label is null", "red, or a dead letter by policy")
def test_null_labels_are_dead_letters_by_policy(project: Project) -> None:
    nulls = null_labels(part(project, 0), 100)
    done = failed(project)
    assert done.returncode == 3
    assert "part-0.parquet" in done.stderr
    assert "label" in done.stderr
    project.write_source("history", history_source(label_null="dead_letter"))
    summary = run(project)
    source = summary["windows"][0]["sources"]["history"]
    assert source["dead_letter_rows"] == nulls
    assert source["trained_rows"] == ROWS - nulls
    assert listed_rows(project) == nulls
    shown = json.loads(project.forebay("dead", "show", "ads", "--output", "json").stdout)
    assert shown[0]["source"] == "history"
    assert shown[0]["file"].endswith("part-0.parquet")
    assert "user" in shown[0]["content"]
    assert {"row_group", "row"} <= shown[0].keys()
    assert stored_rows(project) == nulls


def test_more_dead_letters_than_allowed_is_red(project: Project) -> None:
    nulls = null_labels(part(project, 0), 10)
    project.write_source(
        "history", history_source(label_null="dead_letter", dead_letter_rows_max=nulls - 1)
    )
    done = failed(project)
    assert done.returncode == 3
    assert f"dead_letter_rows_max ({nulls - 1})" in done.stderr
    assert listed_rows(project) == nulls, "kept, although the window has no link"

    # As a letter of a row that is sound now: nothing of an attempt before the first seal counts.
    file = next((project.home / "training").rglob("dead/*.jsonl"))
    line = json.loads(file.read_bytes().splitlines()[0])
    file.write_bytes(file.read_bytes() + json.dumps(line | {"location": {"row": -1}}).encode())
    project.write_source("history", history_source(label_null="dead_letter"))
    summary = run(project)
    assert summary["windows"][0]["sources"]["history"]["dead_letter_rows"] == nulls
    assert listed_rows(project) == stored_rows(project) == nulls


def listed_rows(project: Project) -> int:
    listed = json.loads(project.forebay("dead", "ls", "ads", "--output", "json").stdout)
    assert {(row["model_line"], row["window"]) for row in listed} == {("main", "2026-03-01")}
    return sum(row["rows"] for row in listed)


def test_a_missing_column_names_file_and_column(project: Project) -> None:
    table = pq.read_table(part(project, 0)).drop_columns(["price"])
    pq.write_table(table, part(project, 0))
    done = failed(project)
    assert done.returncode == 3
    assert "price" in done.stderr
    assert "part-0.parquet" in done.stderr


@pytest.mark.guarantee("a log segment is missing", "red: offsets have no holes")
def test_a_hole_in_the_log_is_red(project: Project) -> None:
    segments = sorted((project.log / "0").glob("*.arrow"))
    segments[5].unlink()
    done = failed(project)
    assert done.returncode == 3
    assert "has a gap" in done.stderr or "missing" in done.stderr


def test_a_late_marker_fails_or_is_skipped_and_recorded(project: Project) -> None:
    ready = {"marker": "_SUCCESS", "wait": "1s", "late": "fail"}
    source = history_source(
        options={"path": "data/history", "window_path": "date={date}/*.parquet"}, ready=ready
    )
    project.write_source("history", source)
    done = failed(project)
    assert done.returncode == 2, done.stderr
    assert "_SUCCESS" in done.stderr

    project.write_source("history", {**source, "ready": {**ready, "late": "skip"}})
    summary = run(project)
    skipped = summary["windows"][0]["sources"]["history"]
    assert skipped["trained_rows"] == 0
    assert "_SUCCESS" in skipped["reason"]
    assert summary["windows"][0]["sources"]["clicks"]["trained_rows"] == ROWS
