"""Event times of another unit, or of none, in samples of tables and streams."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.projects import FIRST_DAY, Project, ads_project, rows_of_day

from forebay.config.load import load_project
from forebay.config.yaml.problems import Problem
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.executors.advice.check import check_data
from forebay.system.instants import to_us

NOON = to_us(FIRST_DAY) + 12 * 3_600_000_000
ROWS = 40


def problems(project: Project) -> list[Problem]:
    return check_data(load_project(project.root / "config"), "ads").problems


def with_times(times: Sequence[int | None], unit: str = "us") -> pa.Table:
    rows = rows_of_day(FIRST_DAY, len(times), seed=1)
    return rows.set_column(1, "at", pa.array(times, pa.timestamp(unit, "UTC")))


def in_table(project: Project, table: pa.Table) -> list[Problem]:
    for path in project.files.rglob("*.parquet"):
        path.unlink()
    pq.write_table(table, project.files / "odd.parquet")
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
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(found.message)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (NOON // 1000, "read as microseconds; as milliseconds it would be 2026-03-01 12:00:00"),
        (NOON * 1000, "microseconds after 1970, read as microseconds; as nanoseconds it would be"),
        (0, "0 or -1 in place of a time"),
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
