"""The order of the chain and what becomes a part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_project,
    history_source,
    write_history,
)
from support.truth_rows import served_of

ROWS = 500
FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"


def models(project: Project, line: str = "main") -> dict[tuple[str, int], str]:
    """The state of each link of a line."""
    done = project.forebay("models", "ls", "ads", "--line", line, "--output", "json")
    return {(row["window"], row["generation"]): row["state"] for row in json.loads(done.stdout)}


def why(project: Project, window: str, line: str = "main") -> dict[str, Any]:
    done = project.forebay("why", "ads", window, "--line", line, "--output", "json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(project: Project, first: str, last: str, *more: str) -> tuple[int, str]:
    """What a run ends with that is to be red."""
    done = project.forebay("run", "ads", "--from", first, "--to", last, *more, check=False)
    return done.returncode, " ".join(done.stderr.split())


# Lines are independent ------------------------------------------------------------------------


def test_a_reprocess_of_one_line_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=2, rows=ROWS)
    first = project.run(FIRST, SECOND)
    project.run(FIRST, SECOND, "--line", "b")
    before, served = models(project), served_of(project.home, "ads")
    again = project.run(FIRST, FIRST, "--reprocess", "--line", "b")
    assert again["windows"][0]["generation"] == 2
    found = project.run(FIRST, SECOND)
    assert found["trained_windows"] == []
    assert found["stale_windows"] == []
    assert found["seen"] == first["seen"]
    assert [each["data_changed"] for each in found["windows"]] == [None, None]
    assert (models(project), served_of(project.home, "ads")) == (before, served)
    assert why(project, FIRST)["state"] == "trained"
    stale = f"stale (built on generation 1 of {FIRST}), serves"
    assert models(project, "b")[SECOND, 1] == stale


def test_changed_data_of_one_line_marks_the_others(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=1, rows=ROWS)
    first = project.run(FIRST, FIRST)
    write_history(project.files, FIRST_DAY - DAY, 2 * ROWS)
    other = project.run(FIRST, FIRST, "--line", "b")  # its own first look at the data
    assert other["seen"]["history"]["rows"] == 2 * ROWS
    found = project.run(FIRST, FIRST)
    assert found["trained_windows"] == []
    assert found["seen"] == first["seen"]
    changed = "data changed (generation 2 was planned from it, this model from generation 1)"
    assert found["windows"][0]["data_changed"] == changed
    asked = why(project, FIRST)
    assert asked["state"] == "data changed"
    assert asked["next"] == f"forebay run ads --from {FIRST} --to {FIRST} --reprocess"
    report = project.forebay("report", "ads", "--from", FIRST, "--to", FIRST).stdout
    assert f"note  window {FIRST}: {changed}" in report
    explained = project.forebay("explain", "ads", "--from", FIRST, "--to", FIRST).stdout
    assert f"changed  {FIRST}" in explained
    assert models(project) == {(FIRST, 1): f"{changed}, serves"}
    anew = project.run(FIRST, FIRST, "--reprocess")
    assert anew["seen"]["history"]["rows"] == 2 * ROWS
    assert anew["windows"][0]["data_changed"] is None
    assert why(project, FIRST, "b")["state"] == "trained"


def test_a_dead_letter_says_its_line(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=1, rows=ROWS)
    project.write_source("history", history_source(label_null="dead_letter"))
    path = next(project.files.rglob("*.parquet"))
    table = pq.read_table(path)
    labels = pa.array([None, *table["clicked"].to_pylist()[1:]], pa.int64())
    at = table.schema.get_field_index("clicked")
    pq.write_table(table.set_column(at, "clicked", labels), path)
    project.run(FIRST, FIRST, "--line", "b")
    done = project.forebay("dead", "ls", "ads", "--output", "json")
    found = [(row["model_line"], row["rows"]) for row in json.loads(done.stdout)]
    assert found == [("b", 1)]
