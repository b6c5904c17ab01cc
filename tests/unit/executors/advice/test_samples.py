"""Where rows are sampled if data claim times that cannot be right."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.projects import DAY, FIRST_DAY, ads_project, rows_of_day

from forebay.config.load import load_project
from forebay.executors.advice.samples import LONGEST, sample_sources


@pytest.mark.parametrize("far", [2**62, -(2**62)])
def test_a_time_of_no_year_ends_no_sample(tmp_path: Path, far: int) -> None:
    """`forebay check --connect` ended by an error of Python."""
    project, rows = ads_project(tmp_path, rows=100), rows_of_day(FIRST_DAY - DAY, 1, seed=1)
    odd = rows.set_column(1, "at", pa.array([far], pa.timestamp("us", "UTC")))
    for path in project.files.rglob("*.parquet"):
        path.unlink()
    pq.write_table(odd, project.files / "odd.parquet")
    found = load_project(project.root / "config")
    samples = sample_sources(found.pipeline("ads"), found.sources, project.root)
    assert samples["clicks"].sample.table.num_rows > 0
    assert samples["history"].over.end - samples["history"].over.start <= 2 * LONGEST
