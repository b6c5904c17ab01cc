"""A label not known when its window ended is not trained on, and is counted with the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import independent
from support.declarations import COLUMNS
from support.jobs_here import jobs_in_this_process
from support.parquet_files import null_labels
from support.projects import DAY, FIRST_DAY, Project, ads_project, history_source

ROWS = 3_000
HOUR = np.timedelta64(1, "h")
RANGE = ("--from", "2026-03-01", "--to", "2026-03-02")
Trained = tuple[Project, dict[str, Any]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Two days; a label is known 1 to 60 hours after the event, every seventh at no known time."""
    project = ads_project(tmp_path_factory.mktemp("known"), days=2, rows=ROWS)
    project.pipeline["dataset"]["label"] = {"column": "clicked", "known_at": "known"}
    project.write_pipeline()
    columns = {**COLUMNS, "known": "timestamp"}
    # Labels that are missing and not known yet are no dead letters: they may still come.
    source = history_source(columns=columns, label_null="dead_letter")
    project.write_source("history", source)
    random = np.random.default_rng(5)
    for path in sorted(project.files.rglob("*.parquet")):
        null_labels(path, 10)
        table = pq.ParquetFile(path).read()
        known: Any = table["at"].to_numpy() + random.integers(1, 60, table.num_rows) * HOUR
        known[::7] = np.datetime64("NaT")
        known = pa.array(known, pa.timestamp("us", tz="UTC"))
        pq.write_table(table.append_column("known", known), path, row_group_size=500)
    with jobs_in_this_process():
        return project, project.run("2026-03-01", "2026-03-02")


def expected(project: Project, number: int) -> tuple[int, int, int]:
    """(rows, those whose label was not known in time, dead ones) of the batch of one window."""
    day = FIRST_DAY + (number - 1) * DAY
    rows = not_known = dead = 0
    for path in sorted((project.files / f"date={day:%Y-%m-%d}").glob("*.parquet")):
        table = pq.ParquetFile(path).read(["known", "clicked"]).to_pylist()
        said = [row for row in table if row["known"] is None or row["known"] < day + 2 * DAY]
        rows += len(table)
        not_known += len(table) - len(said)
        dead += sum(row["clicked"] is None for row in said)
    return rows, not_known, dead


@pytest.mark.guarantee(
    "a label was not known yet when its window ended (`known_at`)",
    "the row is not trained on, and is counted as `label_not_known`",
)
def test_rows_are_trained_dead_or_not_known(trained: Trained) -> None:
    project, summary = trained
    total = 0
    for number, window in enumerate(summary["windows"]):
        counts = window["sources"]["history"]
        rows, not_known, dead = expected(project, number)
        assert not_known > 100
        assert dead > 10
        assert counts["planned_rows"] == counts["served_rows"] == rows
        assert counts["label_not_known_rows"] == not_known
        assert counts["dead_letter_rows"] == dead
        assert counts["trained_rows"] == rows - not_known - dead
        assert window["sources"]["clicks"]["label_not_known_rows"] == 0
        total += not_known
    assert summary["rows_agree"]
    assert "planned = served = trained + dead + not known" in summary["rows_line"]
    assert f"+ {total:,})" in summary["rows_line"]
    (note,) = [note for note in summary["notes"] if "known_at" in note]
    assert note.startswith(f"source history: {total:,} of {2 * ROWS:,} rows")
    found = [
        independent.parquet_sums(
            project.files,
            "clicked is not null and (known is null or "
            f"known < timestamptz '{FIRST_DAY + (number + 1) * DAY}')",
            f"date={FIRST_DAY + (number - 1) * DAY:%Y-%m-%d}/*.parquet",
        )
        for number in range(2)
    ]
    assert summary["seen"]["history"] == independent.added(*found)


def test_every_face_says_so(trained: Trained, tmp_path: Path) -> None:
    project, summary = trained
    count = summary["windows"][0]["sources"]["history"]["label_not_known_rows"]
    shown = project.forebay("report", "ads", *RANGE).stdout
    assert f"label not known {count}" in shown
    why = project.forebay("why", "ads", "2026-03-01").stdout
    assert f"their label was not known in time: history {count:,} of {ROWS:,}" in " ".join(
        why.split()
    )
    stage = json.loads(
        project.forebay("stage", "evaluate", "ads", "2026-03-01").stdout.splitlines()[-1]
    )
    assert stage["label_not_known"] == {"history": count}
    assert "not known" in stage["rows_line"]
    html = tmp_path / "report.html"
    project.forebay("report", "ads", *RANGE, "--html", str(html))
    assert "<th>label not known</th>" in html.read_text()
