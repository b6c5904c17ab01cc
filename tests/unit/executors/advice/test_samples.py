"""Where rows are sampled, how many, and what is said of their labels."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.projects import DAY, FIRST_DAY, ads_project, rows_of_day
from support.stages import START, memory_source, pipeline, table

from forebay.config.load import load_project
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.executors.advice import samples
from forebay.executors.advice.check import _labels_line
from forebay.executors.advice.samples import LONGEST, sample_sources
from forebay.mixture.advice.completeness import AgeShare, Completeness
from forebay.mixture.metrics.share import Share


@pytest.mark.parametrize("far", [2**62, -(2**62)])
def test_a_time_of_no_year_ends_no_sample(tmp_path: Path, far: int) -> None:
    """`forebay check --connect` ended by an error of Python."""
    project, rows = ads_project(tmp_path, rows=100), rows_of_day(FIRST_DAY - DAY, 1, seed=1)
    odd = rows.set_column(1, "at", pa.array([far], pa.timestamp("us", "UTC")))
    for path in project.files.rglob("*.parquet"):
        path.unlink()
    pq.write_table(odd, project.files / "odd.parquet")
    found = load_project(project.root / "config")
    drawn = sample_sources(found.pipeline("ads"), found.sources, project.root)
    assert drawn["clicks"].sample.table.num_rows > 0
    assert drawn["history"].over.end - drawn["history"].over.start <= 2 * LONGEST


@pytest.mark.parametrize(("enough", "rows"), [(720, 720), (721, 1440)])
def test_spans_grow_until_there_are_enough_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough: int, rows: int
) -> None:
    """A row a minute for a day: twelve hours of it first, then all of it."""
    monkeypatch.setattr(samples, "ROWS_ENOUGH", enough)
    monkeypatch.setitem(MEMORY, "a", table([START + minute * DAY / 1440 for minute in range(1440)]))
    found = sample_sources(pipeline(("a",)), {"a": memory_source("a")}, tmp_path)["a"]
    assert (found.sample.table.num_rows, found.sample.is_whole) == (rows, True)
    assert found.rate == pytest.approx(60, rel=0.001)


@pytest.mark.parametrize(
    ("taken_back", "told"), [(0, ""), (1200, "; 1,200 positives were taken back")]
)
def test_what_is_said_of_sampled_labels(taken_back: int, told: str) -> None:
    share = Share(2, 3, 0.3, 0.8)
    ages = (AgeShare(0, 3600, share), AgeShare(3600, 10_800, Share(3, 3, 0.6, 1.0)))
    found = Completeness(9, 3, share, taken_back, 5400.0, ages)
    assert _labels_line("ads", "clicks", found) == (
        "labels  ads, clicks: 66% (30%-80%) of 3 positives are known at publication, 90m after the "
        f"event (median); by age of the label: 1h 66%, 1h-3h 100%{told}"
    )
    unknown = Completeness(9, 3, None, taken_back, None, ())
    assert _labels_line("ads", "clicks", unknown) == (
        "labels  ads, clicks: unknown how many positives are known at publication: 3 of 9 sampled "
        f"events have twins in batch sources, and none of them is positive{told}"
    )
