"""A look at some spans lists only their folders, and finds in them what planning finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.parquet_source import DAY, START, days, source, table, write

from forebay.datatasks.sources.common.contract.base import Scan, Source
from forebay.datatasks.sources.common.files.path_times import FOLDERS_MAX

DAYS = 40
BY_DAY = {"path": "data", "window_path": "date={date}/*.parquet"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(DAYS):
        write(day(tmp_path, number), table([START + DAY * number] * 3))
    return tmp_path


def day(root: Path, number: int) -> Path:
    return root / "data" / f"date={START + DAY * number:%Y-%m-%d}" / "rows.parquet"


def paths(scan: Scan) -> list[str]:
    return [each["path"] for ranges in scan.tasks["ranges"].to_pylist() for each in ranges]


def test_it_is_what_planning_sees(root: Path) -> None:
    spans = [days(DAYS)[number] for number in (3, 7)]
    looked, scanned = source(root, BY_DAY).look(spans), source(root, BY_DAY).scan(spans)
    assert looked.fingerprints == scanned.fingerprints
    assert looked.tasks.equals(scanned.tasks)
    assert looked.storage_calls == 2 + 2  # listings and footers
    assert paths(looked) == ["date=2026-03-04/rows.parquet", "date=2026-03-08/rows.parquet"]


def test_other_folders_are_not_looked_at(root: Path) -> None:
    span = days(DAYS)[3:4]
    before = source(root, BY_DAY).look(span)
    (root / "data" / "stray.parquet").write_bytes(b"no file of Parquet")
    assert source(root, BY_DAY).look(span).fingerprints == before.fingerprints


def test_what_came_and_what_went_is_seen(root: Path) -> None:
    span = days(DAYS)[3:4]
    day(root, 3).with_name("more.parquet").write_bytes(day(root, 3).read_bytes())
    assert len(paths(source(root, BY_DAY).look(span))) == 2
    for path in day(root, 3).parent.iterdir():
        path.unlink()
    day(root, 3).parent.rmdir()
    assert paths(source(root, BY_DAY).look(span)) == []


@pytest.mark.parametrize(
    "glob", [{"path": "data/*/rows.parquet"}, {"window_path": "date={date}*/rows.parquet"}]
)
def test_folders_that_have_to_be_searched_for_are_listed_all(
    root: Path, glob: dict[str, str]
) -> None:
    options = BY_DAY | glob
    looked = source(root, options).look(days(1))
    assert looked.fingerprints == source(root, options).scan(days(1)).fingerprints


def test_many_folders_are_one_listing(root: Path) -> None:
    def listings(opened: Source, count: int) -> int:
        return opened.look(days(count)).storage_calls - count

    assert listings(source(root, BY_DAY), FOLDERS_MAX) == FOLDERS_MAX
    assert listings(source(root, BY_DAY), FOLDERS_MAX + 1) == 1


def test_folders_without_leading_zeros_are_found(tmp_path: Path) -> None:
    pattern = "year={year}/month={month}/day={day}/*.parquet"
    opened = source(tmp_path, {"path": "data", "window_path": pattern})
    write(tmp_path / "data/year=2026/month=3/day=4/rows.parquet", table([START + DAY * 3]))
    span = days(DAYS)[3:4]
    looked = opened.look(span)
    assert paths(looked) == ["year=2026/month=3/day=4/rows.parquet"]
    assert looked.fingerprints == opened.scan(span).fingerprints
