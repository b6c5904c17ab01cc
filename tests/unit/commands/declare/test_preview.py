"""`forebay preview` of times that no calendar has."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.projects import ads_project

from forebay.cli import run
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.system.instants import to_us

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_time_of_no_year_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    """It ended with an OverflowError of Python."""
    project = ads_project(tmp_path, rows=3)
    far = to_us(AT) * 1000
    table = pq.read_table(min(project.files.rglob("*.parquet"))).slice(0, 1)
    table = table.set_column(1, "at", pa.array([far], pa.timestamp("us", "UTC")))
    for path in project.log.rglob("*.arrow"):
        path.unlink()
    LogWriter(project.log, 0).append(table, AT)
    config = str(tmp_path / "config")
    assert run(["preview", "clicks", "--config", config, "--output", output]) == 0
    assert f"{far} microseconds after 1970" in capsys.readouterr().out


def test_a_table_of_1970_says_why_it_shows_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = ads_project(tmp_path, rows=3)
    for path in project.files.rglob("*.parquet"):
        times = pa.array([to_us(AT) // 1000] * 2, pa.timestamp("us", "UTC"))
        table = pq.read_table(path).slice(0, 1)
        pq.write_table(table.set_column(1, "at", times[: table.num_rows]), path)
    assert run(["preview", "history", "--config", str(tmp_path / "config")]) == 3
    wanted = "problem     the time of its newest row is wrong (1970-01-21 12:"
    assert wanted in capsys.readouterr().out
