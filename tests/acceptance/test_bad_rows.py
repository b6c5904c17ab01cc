"""Rows that decode but cannot be trained on: red with their place, or dead letters by policy."""

from __future__ import annotations

import json
import math
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declarations import COLUMNS
from support.projects import DAY, FIRST_DAY, Project, ads_project, history_source

pytestmark = pytest.mark.usefixtures("jobs_here")

ROWS = 1_000
BEFORE = FIRST_DAY - DAY
# The row of part-0.parquet that each one is in, and what is said of it.
REASONS = {
    3: "column 'price' is nan",
    5: "column 'price' is inf",
    7: "feature 'price' is beyond 1e+19 where column 'price' is 1e+300",
    11: "the event has no id",
    13: "the label in column 'clicked' is 2",
    17: "its label was known before the event",
    19: "column 'event' as int: Integer value 18446744073709551615 not in range",
}


def changed(table: pa.Table, column: str, values: dict[int, Any], kind: pa.DataType) -> pa.Table:
    every = table.column(column).to_pylist()
    for row, value in values.items():
        every[row] = value
    return table.set_column(table.schema.get_field_index(column), column, pa.array(every, kind))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Batch rows with the time at which each label was known, and one bad row of each kind."""
    made = ads_project(tmp_path, days=1, rows=ROWS)
    label = {"column": "clicked", "positive": 1, "negative": 0, "known_at": "known"}
    made.pipeline["dataset"]["label"] = label
    made.pipeline["dataset"]["features"]["price"] = {"encode": "numeric"}
    made.write_pipeline()
    folder = made.files / f"date={BEFORE:%Y-%m-%d}"
    for number in range(2):
        path = folder / f"part-{number}.parquet"
        table = pq.ParquetFile(path).read()
        known = [at + timedelta(hours=1) for at in table.column("at").to_pylist()]
        table = table.append_column("known", pa.array(known, pa.timestamp("us", tz="UTC")))
        if number == 0:
            table = changed(table, "price", {3: math.nan, 5: math.inf, 7: 1e300}, pa.float64())
            table = changed(table, "event", {11: None, 19: 2**64 - 1}, pa.uint64())
            table = changed(table, "clicked", {13: 2}, pa.int64())
            early = table.column("at").to_pylist()[17] - timedelta(seconds=1)
            table = changed(table, "known", {17: early}, pa.timestamp("us", tz="UTC"))
        pq.write_table(table, path, row_group_size=500)
    return made


def source(project: Project, **policy: Any) -> None:
    columns = {**COLUMNS, "known": "timestamp"}
    project.write_source("history", history_source(columns=columns, **policy))


def run(project: Project) -> Any:
    return project.forebay("run", "ads", "--from", "2026-03-01", "--to", "2026-03-01", check=False)


@pytest.mark.guarantee(
    "a number makes a numeric feature infinite, or larger than 1e19",
    "red with its place, or a dead letter by `bad_rows`",
)
@pytest.mark.guarantee(
    "a row has a bad feature (NaN, infinite), a bad label (neither `positive` nor `negative`, "
    "or known before the event) or no event id",
    "red with its place, or a dead letter by policy",
)
def test_they_are_dead_letters_with_place_and_reason(project: Project) -> None:
    source(project, bad_rows="dead_letter", dead_letter_rows_max=len(REASONS))
    summary = project.run("2026-03-01", "2026-03-01")
    counts = summary["windows"][0]["sources"]["history"]
    assert counts["dead_letter_rows"] == len(REASONS)
    assert counts["planned_rows"] == counts["served_rows"] == ROWS
    assert counts["trained_rows"] == ROWS - len(REASONS)
    assert summary["rows_agree"]
    letters = json.loads(project.forebay("dead", "show", "ads", "--output", "json").stdout)
    assert {Path(letter["file"]).name for letter in letters} == {"part-0.parquet"}
    found = {letter["row"]: letter["reason"] for letter in letters}
    assert found.keys() == REASONS.keys()
    assert all(found[row].startswith(reason) for row, reason in REASONS.items()), found


@pytest.mark.parametrize("row", [3, 11, 13, 17, 19])
def test_each_kind_is_red_by_default(project: Project, row: int) -> None:
    path = project.files / f"date={BEFORE:%Y-%m-%d}" / "part-0.parquet"
    table = pq.ParquetFile(path).read()
    kept = [number for number in range(table.num_rows) if number == row or number not in REASONS]
    pq.write_table(table.take(kept), path, row_group_size=500)
    source(project)
    done = run(project)
    assert done.returncode == 3
    assert f"row {kept.index(row)}: {REASONS[row]}" in done.stderr
    assert row == 19 or "bad_rows: dead_letter" in done.stderr
    assert Counter(done.stderr.split())["Traceback"] == 0
