"""The kind `parquet`: what is found, looked at and refused before rows are read; markers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from support.parquet_source import DAY, START, days, evenly, numbers, read, source, table, write

from forebay.config.specs.windows import HOUR
from forebay.datatasks.sources.common.contract.base import Scan, Source
from forebay.datatasks.sources.common.files.path_times import FOLDERS_MAX
from forebay.errors import ConfigError, DataError


def test_nothing_matched(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        source(tmp_path).scan(days(1))
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match="is empty"):
        source(tmp_path).scan(days(1))
    assert source(tmp_path, starts="2026-03-01").scan(days(2)).fingerprints[0]
    for path in ("data", "data/*.parquet"):
        said = source(tmp_path, {"path": path}).describe().empty_reason
        below = "" if "*" in path else " (*.parquet below it)"
        assert said.startswith(f"nothing matches {path}{below}: ")
        assert "is empty" in said
    (tmp_path / "data/a.csv").write_text("x")
    for more in ({}, {"starts": "2026-03-01"}):
        with pytest.raises(DataError, match=r"data contains a\.csv"):
            source(tmp_path, **more).scan(days(1))
    [finding] = source(tmp_path).findings()
    assert finding.path == ("options", "path")


@pytest.mark.parametrize(
    ("at", "newest"), [(2**62, datetime.max.replace(tzinfo=UTC)), (None, None)]
)
def test_the_newest_time_may_be_of_no_year(
    tmp_path: Path, at: int | None, newest: datetime | None
) -> None:
    """`preview` ended by an error of Python."""
    far = pa.array([at], pa.timestamp("us", "UTC"))
    write(tmp_path / "data/x.parquet", pa.table({"at": far, "n": [1]}))
    assert source(tmp_path).describe().newest == newest


@pytest.mark.guarantee(
    "a file has two names in a source (links, hard links)", "red with both names and what to do"
)
def test_a_file_under_two_names_never_counts_twice(tmp_path: Path) -> None:
    rows = table(evenly(START, 3, HOUR))
    for day in ("01", "02"):
        write(tmp_path / f"data/date=2026-03-{day}/x.parquet", rows)
    newest = tmp_path / "data/date=2026-03-02"
    for link, target in (("latest", newest), ("date=2026-03-02/y.parquet", newest / "x.parquet")):
        (tmp_path / "data" / link).symlink_to(target)
        with pytest.raises(DataError, match=r"x\.parquet and .* are the same file \(a link\)"):
            source(tmp_path).scan(days(1))
        only = source(tmp_path, {"path": "data/date=*/x.parquet"})
        assert len(numbers(read(only, days(1)))) == 6
        (tmp_path / "data" / link).unlink()


def test_what_says_to_which_window_rows_belong(tmp_path: Path) -> None:
    daily = {"path": "data", "window_path": "date={date}/*.parquet"}
    hourly = {"path": "data", "window_path": "{date}/{hour}/*.parquet"}
    assert source(tmp_path).cut == "column 'at'"
    assert source(tmp_path, daily).cut == "the day in their path and column 'at'"
    assert source(tmp_path, hourly, event_time=None).cut == "the hour in their path"


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"window_path: .*unknown placeholder"):
        source(tmp_path, {"path": "data", "window_path": "{dat}/*"})
    with pytest.raises(ConfigError, match="belong in window_path"):
        source(tmp_path, {"path": "data/{date}"})


def test_the_newest_time_and_the_folders_are_described(tmp_path: Path) -> None:
    write(tmp_path / "data/a/x.parquet", table(evenly(START, 10, HOUR)))
    write(tmp_path / "data/b/x.parquet", table(evenly(START, 3, HOUR)))
    found = source(tmp_path).describe()
    assert (found.partitions, found.newest) == (["a", "b"], START + HOUR * 9)
    assert found.columns == {"at": "timestamp[us, tz=UTC]", "n": "int64"}


def test_the_first_and_the_newest_file_are_compared(tmp_path: Path) -> None:
    good, bad = table([START]), table([START]).drop_columns("n")
    for name, rows in {"a": good, "b": bad, "c": good}.items():
        write(tmp_path / f"data/{name}.parquet", rows)
    assert source(tmp_path).findings() == []
    write(tmp_path / "data/a.parquet", bad)
    (finding,) = source(tmp_path).findings()
    assert finding.path == ("columns", "n")
    assert "a.parquet" in finding.message
    write(tmp_path / "data/a.parquet", good)
    write(tmp_path / "data/c.parquet", bad)
    (finding,) = source(tmp_path).findings()
    assert "c.parquet" in finding.message
    assert list(source(tmp_path).describe().columns) == ["at"]


def test_a_newest_file_that_is_broken_is_described_so(tmp_path: Path) -> None:
    write(tmp_path / "data/a.parquet", table([START]))
    (tmp_path / "data/b.parquet").write_bytes(b"no parquet")
    assert "b.parquet cannot be read" in source(tmp_path).describe().empty_reason


def test_the_newest_time_of_paths_is_the_end_of_the_last(tmp_path: Path) -> None:
    write(tmp_path / "data/date=2026-03-01/a.parquet", table([START]))
    opened = source(tmp_path, {"path": "data", "window_path": "date={date}/*.parquet"})
    assert opened.describe().newest == START + DAY


def test_the_newest_time_is_looked_for_in_the_last_16_files(tmp_path: Path) -> None:
    for number in range(17):
        hours = {0: 100, 1: 50}.get(number, number)
        write(tmp_path / f"data/{number:02d}.parquet", table([START + HOUR * hours]))
    assert source(tmp_path).describe().newest == START + HOUR * 50


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
