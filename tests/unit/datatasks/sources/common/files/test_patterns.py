"""Globs and times in paths, the same in Python and in Arrow."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.files.path_times import matching, path_times
from forebay.datatasks.sources.common.files.patterns import glob_regex, split_root, time_pattern
from forebay.system.instants import from_us


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        *(("*.parquet", "a.parquet", True), ("*.parquet", "b/a.parquet", False)),
        *(("**/*.parquet", "a.parquet", True), ("**/*.parquet", "b/c/a.parquet", True)),
        *(("b/**", "b/c/a.parquet", True), ("part-?.parquet", "part-1.parquet", True)),
        *(("part-?.parquet", "part-12.parquet", False), ("[ab].parquet", "b.parquet", True)),
        *(("[!ab].parquet", "b.parquet", False), ("[!ab].parquet", "a.parquet", False)),
        *(("[!ab].parquet", "!.parquet", True), ("[a].parquet", "a.parquet", True)),
        *(("[a]bc", "abc", True), ("b]c", "b]c", True), ("[]a].parquet", "].parquet", True)),
        *(("ab[12].parquet", "ab1.parquet", True), ("a+b(1).parquet", "a+b(1).parquet", True)),
        *(("[", "[", True), ("**", "a\nb/c.parquet", True)),
        ("**/*.parquet", "a\nb/c\nd.parquet", True),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    regex = glob_regex(pattern)
    assert bool(re.fullmatch(regex, path)) is matches
    assert bool(len(matching(pa.array([path]), regex))) is matches


@pytest.mark.parametrize(
    ("path", "root", "pattern"),
    [
        *(("data/flights", "data/flights", ""), ("data/*/x.parquet", "data", "*/x.parquet")),
        *(("/data/*.parquet", "/data", "*.parquet"), ("/*.parquet", "/", "*.parquet")),
        *(("*.parquet", "", "*.parquet"), ("s3://bucket/a/b*/c", "s3://bucket/a", "b*/c")),
    ],
)
def test_the_root_is_the_last_folder_without_a_pattern(path: str, root: str, pattern: str) -> None:
    assert split_root(path) == (root, pattern)


def test_primus_8_folder_of_the_first_hour_of_a_year() -> None:
    """StringUtilsTest: /lake/{{YYYY}}{{MM}}{{DD}}/{{HH}}/ is /lake/20200101/00/."""
    pattern = time_pattern("{date:%Y%m%d}/{hour}/*")
    start = datetime(2020, 1, 1, tzinfo=UTC)
    assert pattern.folders(start, start + timedelta(hours=1)) == [["20200101/00", "20200101/0"]]


def test_folders_of_a_span_that_crosses_midnight() -> None:
    start = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    end = start + timedelta(hours=1)
    assert time_pattern("{date}/*").folders(start, end) == [["2026-03-01"], ["2026-03-02"]]
    hours = [["2026-03-01-23"], ["2026-03-02-00", "2026-03-02-0"]]
    assert time_pattern("{date}-{hour}/*").folders(start, end) == hours


def test_numbers_in_paths_need_no_leading_zero() -> None:
    pattern = time_pattern("year={year}/month={month}/day={day}/*")
    assert pattern.folders(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)) == [
        [f"year=2026/month={month}/day={day}" for month in ("03", "3") for day in ("01", "1")]
    ]
    days = [("3", "1"), ("12", "31"), ("03", "1")]
    paths = pa.array([f"year=2026/month={month}/day={day}/a" for month, day in days])
    assert len(matching(paths, pattern.regex)) == 3
    low, _ = path_times(paths, pattern)
    assert [from_us(int(each)).strftime("%m-%d") for each in low] == ["03-01", "12-31", "03-01"]


@pytest.mark.parametrize(
    ("text", "path", "day"),
    [
        ("{year}{month}{day}.x", "20261112.x", 12),
        ("*{month}-{year}-{day}*", "a11-2026-12b", 12),
        ("[0-9]{month}/{year}/{day}", "111/2026/2", 2),
        ("{year}/{month}/{day}0", "2026/11/120", 12),
    ],
)
def test_beside_another_number_a_number_has_all_its_digits(text: str, path: str, day: int) -> None:
    low, _ = path_times(pa.array([path]), time_pattern(text))
    assert from_us(int(low[0])) == datetime(2026, 11, day, tzinfo=UTC)
    others = pa.array(["2026112.x", "a1-2026-1", "11/2026/2", "2026/1/20"])
    assert not len(matching(others, time_pattern(text).regex))


@pytest.mark.parametrize(
    ("text", "path", "hours"),
    [
        ("date={date}/*.parquet", "date=2026-03-01/a.parquet", 24),
        ("{year}/{month}/{day}/{hour}/*", "2026/03/01/00/a.parquet", 1),
        ("*/{date:%Y%m%dT%H}-*", "de/20260301T00-a.parquet", 1),
        ("{date}/{date}-x", "2026-03-01/2026-03-01-x", 24),
    ],
)
def test_times_of_paths(text: str, path: str, hours: int) -> None:
    low, high = path_times(pa.array([path]), time_pattern(text))
    assert from_us(int(low[0])) == datetime(2026, 3, 1, tzinfo=UTC)
    assert from_us(int(high[0])) - from_us(int(low[0])) == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{dat}/*", "unknown placeholder {dat}"),
        ("{hour}/*", "does not name a whole date"),
        ("{date:%j}/*", "'%j' is not known"),
        ("{date:%-Y}", "'%-' is not known"),
        ("{hour:%H}/*", "unknown placeholder"),
    ],
)
def test_patterns_that_say_no_time(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        time_pattern(text)


@given(st.integers(0, 2**32), st.booleans())
def test_a_folder_names_the_time_it_was_made_from(second: int, hourly: bool) -> None:
    pattern = time_pattern("{date}/{hour}/*" if hourly else "{date}/*")
    instant = datetime.fromtimestamp(second, UTC)
    [ways] = pattern.folders(instant, instant + timedelta(microseconds=1))
    for folder in ways:
        low, high = path_times(pa.array([f"{folder}/file"]), pattern)
        assert from_us(int(low[0])) <= instant < from_us(int(high[0]))
