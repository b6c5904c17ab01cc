"""Event times of another unit, or of none, in samples of tables and streams."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.projects import DAY, FIRST_DAY, Project, ads_project, rows_of_day
from support.stages import START, memory_source, pipeline, table

from forebay.config.load import load_project
from forebay.config.yaml.problems import Problem
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.executors.advice import samples
from forebay.executors.advice.check import _labels_line, check_data
from forebay.executors.advice.samples import LONGEST, sample_sources
from forebay.mixture.advice.completeness import AgeShare, Completeness
from forebay.mixture.metrics.share import Share
from forebay.system.instants import to_us

NOON = to_us(FIRST_DAY) + 12 * 3_600_000_000
ROWS = 40


def problems(project: Project) -> list[Problem]:
    return check_data(load_project(project.root / "config"), "ads").problems


def with_times(times: Sequence[int | None], unit: str = "us") -> pa.Table:
    rows = rows_of_day(FIRST_DAY, len(times), seed=1)
    return rows.set_column(1, "at", pa.array(times, pa.timestamp(unit, "UTC")))


def write_in_place(project: Project, table: pa.Table) -> None:
    for path in project.files.rglob("*.parquet"):
        path.unlink()
    pq.write_table(table, project.files / "odd.parquet")


def in_table(project: Project, table: pa.Table) -> list[Problem]:
    write_in_place(project, table)
    return [each for each in problems(project) if "history" in each.file]


def in_stream(project: Project, table: pa.Table) -> list[Problem]:
    shutil.rmtree(project.log)
    LogWriter(project.log, 0).append(table, datetime(2026, 3, 1, 13, tzinfo=UTC))
    return [each for each in problems(project) if "clicks" in each.file]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return ads_project(tmp_path, rows=100)


@pytest.mark.parametrize(
    ("times", "unit", "severity", "words"),
    [
        ([NOON // 10**6] * ROWS, "ms", "error", "40 of 40 rows .*; as seconds it would be 2026-0"),
        ([NOON // 1000] * ROWS, "us", "error", "read as microseconds; as milliseconds it would be"),
        ([-1] * ROWS, "us", "error", "0 or -1 in place of a time"),
        (
            [NOON] * ROWS,
            "ms",
            "error",
            "after the year 9999, read as milliseconds; its unit is a sm",
        ),
        ([0, *[NOON] * (ROWS - 1)], "us", "note", "wrong in 1 of .*0 or -1 in place of a time"),
    ],
)
def test_a_table(project: Project, times: list[int], unit: str, severity: str, words: str) -> None:
    (found,) = in_table(project, with_times(times, unit))
    assert (found.code, found.severity) == ("event-times", severity)
    assert "event_time" in Path(found.file).read_text().splitlines()[found.line - 1]
    assert re.search(words, found.message)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (NOON // 1000, "read as microseconds; as milliseconds it would be 2026-03-01 12:00:00"),
        (NOON * 1000, "microseconds after 1970, read as microseconds; as nanoseconds it would be"),
    ],
)
def test_a_stream(project: Project, time: int, words: str) -> None:
    (found,) = in_stream(project, with_times([time] * ROWS))
    assert (found.code, found.severity) == ("event-times", "error")
    assert words in found.message


def test_times_as_they_should_be(project: Project) -> None:
    assert in_table(project, with_times([NOON] * ROWS)) == []
    assert in_stream(project, with_times([NOON, None] * (ROWS // 2))) == []


def test_event_ids_of_several_rows(project: Project) -> None:
    assert [each.code for each in problems(project)] == []
    for path in project.files.rglob("*.parquet"):
        shutil.copy(path, path.with_name(f"again-{path.name}"))
    (found,) = problems(project)
    assert (found.code, found.severity) == ("repeated-events", "note")
    assert "event_id" in Path(found.file).read_text().splitlines()[found.line - 1]
    assert "sampled rows of history share their event id with another one" in found.message
    assert "as if all had been delivered twice" in found.message


@pytest.mark.parametrize("far", [2**62, -(2**62)])
def test_a_time_of_no_year_ends_no_sample(project: Project, far: int) -> None:
    """`forebay check --connect` ended by an error of Python."""
    write_in_place(project, with_times([far]))
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
