"""Checking whether many windows are complete costs little more than checking one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.files.listing import Files
from forebay.datatasks.sources.log.writer import LogWriter

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPANS = [Interval(START + n * HOUR, START + (n + 1) * HOUR) for n in range(48)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    exists, listing = Files.exists, Files.listing

    def counted_exists(self: Files, relative: str) -> bool:
        calls.append(f"exists {relative}")
        return exists(self, relative)

    def counted_listing(self: Files, **options: Any) -> Any:
        calls.append("listing")
        return listing(self, **options)

    monkeypatch.setattr(Files, "exists", counted_exists)
    monkeypatch.setattr(Files, "listing", counted_listing)
    return calls


def spec(kind: str, **options: str) -> SourceSpec:
    fields = {"name": "a", "kind": kind, "options": {"path": "data", **options}}
    times = {"columns": {"at": "timestamp"}, "event_time": "at"}
    return SourceSpec.model_validate(fields | times | {"ready": {"marker": "_END"}})


def ready(root: Path, declared: SourceSpec) -> list[bool]:
    source = open_source(declared, root)
    found = source.readiness_of(SPANS)
    assert found == [source.readiness(span) for span in SPANS]
    assert all(bool(each.reason) != each.ready for each in found)
    return [each.ready for each in found]


def mark(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "_END").touch()


def test_a_marker_of_a_day_is_looked_for_once_for_its_hours(
    tmp_path: Path, asked: list[str]
) -> None:
    mark(tmp_path / "data/date=2026-03-01")
    source = open_source(spec("parquet", window_path="date={date}/*.parquet"), tmp_path)
    assert [each.ready for each in source.readiness_of(SPANS)] == [True] * 24 + [False] * 24
    assert asked == ["exists date=2026-03-01/_END", "exists date=2026-03-02/_END"]


def test_markers_of_hours(tmp_path: Path) -> None:
    for hour in (0, 3):
        mark(tmp_path / f"data/2026-03-01/{hour:02}")
    declared = spec("parquet", window_path="{date}/{hour}/*.parquet")
    found = ready(tmp_path, declared)
    assert [hour for hour in range(48) if found[hour]] == [0, 3]
    (tmp_path / "data/2026-03-01/04").mkdir()
    both, source = Interval(SPANS[3].start, SPANS[4].end), open_source(declared, tmp_path)
    assert source.readiness(both).reason.endswith(f"no _END in {tmp_path}/data/2026-03-01/04")
    (tmp_path / "data/2026-03-01/04/_END").touch()
    assert source.readiness(both).ready


def test_markers_of_hours_without_leading_zeros(tmp_path: Path) -> None:
    mark(tmp_path / "data/2026-03-01/0")
    declared = spec("parquet", window_path="{date}/{hour}/*.parquet")
    assert [hour for hour, found in enumerate(ready(tmp_path, declared)) if found] == [0]
    (tmp_path / "data/2026-03-01/4").mkdir()
    reason = open_source(declared, tmp_path).readiness(SPANS[4]).reason
    assert reason.endswith(f"no _END in {tmp_path}/data/2026-03-01/4")
    mark(tmp_path / "data/eu/2026-03-01/3")
    declared = spec("parquet", window_path="*/{date}/{hour}/*.parquet")
    assert [hour for hour, found in enumerate(ready(tmp_path, declared)) if found] == [3]


def test_folders_that_have_to_be_searched_are_listed_once(tmp_path: Path, asked: list[str]) -> None:
    for region in ("eu", "us"):
        mark(tmp_path / f"data/{region}/date=2026-03-01")
    mark(tmp_path / "data/eu/date=2026-03-02")
    (tmp_path / "data/us/date=2026-03-02").mkdir()
    (tmp_path / "data/us/date=2026-03-02/part.parquet").touch()
    source = open_source(spec("parquet", window_path="*/date={date}/*.parquet"), tmp_path)
    found = source.readiness_of(SPANS)
    assert [each.ready for each in found] == [True] * 24 + [False] * 24
    assert found[24].reason.endswith("data/us/date=2026-03-02")
    assert asked == ["listing"]


def test_a_folder_that_has_to_be_searched_and_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    source = open_source(spec("parquet", window_path="*/date={date}/*.parquet"), tmp_path)
    found = source.readiness(SPANS[0])
    assert (found.ready, found.reason.endswith("data/*/date=2026-03-01")) == (False, True)


def test_without_times_in_paths_the_marker_lies_in_the_source_s_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert not open_source(spec("parquet"), tmp_path).readiness(SPANS[0]).ready
    (tmp_path / "data" / "_END").touch()
    assert open_source(spec("parquet"), tmp_path).readiness(SPANS[0]).ready


def test_a_log_is_listed_once(tmp_path: Path, asked: list[str]) -> None:
    rows = pa.table({"at": pa.array([START], pa.timestamp("us", "UTC"))})
    for partition, last in ((0, 30), (1, 10), (2, 5)):
        writer = LogWriter(tmp_path / "data", partition)
        for hour in (0, last):
            writer.append(rows, START + hour * HOUR)
    (tmp_path / "data/0/_END").touch()
    (tmp_path / "data/2/_END").touch()
    source = open_source(spec("log"), tmp_path)
    found = source.readiness_of(SPANS)
    assert [hour for hour in range(48) if found[hour].ready] == list(range(10))
    assert found[10].reason.startswith("partition 1 has no segment after 2026-03-01T11:00")
    assert (asked.count("listing"), len(asked)) == (1, 4)
    assert ready(tmp_path, spec("log")) == [each.ready for each in found]


def test_without_a_marker_the_clock_says_it(tmp_path: Path, asked: list[str]) -> None:
    now = datetime.now(UTC)
    spans = [Interval(now - 2 * HOUR, now - HOUR), Interval(now, now + HOUR)]
    for kind in ("parquet", "log"):
        declared = spec(kind).model_copy(update={"ready": SourceSpec.model_fields["ready"].default})
        found = open_source(declared, tmp_path).readiness_of(spans)
        assert [each.ready for each in found] == [True, False]
        assert found[1].reason.startswith("its time ends at ")
    assert asked == []
