"""Footers with impossible claims, or that take long: named by policy, in bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from support.cpu_limits import cpu_limit
from support.hostile.forged_footers import Claim, forged_file
from support.parquet_source import DAY, START, days, evenly, numbers, read, source, table, write

from forebay.config.specs.windows import HOUR
from forebay.datatasks.sources.common.row_groups import planner
from forebay.datatasks.sources.common.row_groups.planner import Candidates
from forebay.datatasks.sources.common.values.times import Spans
from forebay.datatasks.sources.parquet import footer_process
from forebay.datatasks.sources.parquet.plan import ParquetPlanner
from forebay.errors import DataError
from forebay.system.instants import to_us
from forebay.testing.source_suite import tasks_of

AT = to_us(START)
CLAIMS = {
    "a row group has a negative number of rows": [Claim(5, AT, AT), Claim(-3, AT, AT)],
    "a row group has a negative number of bytes": [Claim(5, AT, AT, size=-1)],
    "its footer claims 13,835,058,055,282,163,712 rows": [Claim(2**62, AT, AT)] * 3,
    "its footer claims 2,251,799,813,685,248 bytes": [Claim(5, AT, AT, size=2**51)],
    "it has 100,001 row groups": [Claim(0, AT, AT)] * (footer_process.ROW_GROUPS_MAX + 1),
    "no row has a time in 'at'": [Claim(5), Claim(2)],
}


@pytest.mark.parametrize("reason", CLAIMS)
def test_what_cannot_be_is_named_and_others_are_read(reason: str, tmp_path: Path) -> None:
    write(tmp_path / "data" / "b.parquet", table(evenly(START, 4, HOUR)))
    (tmp_path / "data" / "a.parquet").write_bytes(forged_file(CLAIMS[reason]))
    with pytest.raises(DataError, match=f"a.parquet cannot be read: {reason}"):
        source(tmp_path).scan(days(1))
    lenient = source(tmp_path, bad_rows="dead_letter")
    chunks = read(lenient, days(2))
    assert numbers(chunks) == [0, 1, 2, 3]
    rows = 7 if reason.startswith("no row has a time") else 1  # those are known to be there
    assert [(row.location["file"], row.rows) for each in chunks for row in each.dead] == [
        ("a.parquet", rows)
    ]


def test_times_that_are_null_go_with_the_earliest_of_their_file(tmp_path: Path) -> None:
    """Also where there are very many of them: it took hours."""
    (tmp_path / "data").mkdir()
    claims = [Claim(5)] * 90_000 + [Claim(3, AT + 7, AT + DAY // HOUR)]
    (tmp_path / "data" / "a.parquet").write_bytes(forged_file([*claims[1:], claims[0]]))
    opened, spans = source(tmp_path), days(2)
    with cpu_limit("a file of many row groups", 5):
        tasks = tasks_of(opened.scan(spans), spans, 0)
    assert sum(task.rows for task in tasks) == 5 * 90_000 + 3
    assert tasks_of(opened.scan(spans), spans, 1) == []


def test_a_row_group_of_too_many_rows_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "CUT_ROWS_MAX", 20)
    path = write(tmp_path / "data" / "a.parquet", table(evenly(START, 68, HOUR)), row_group_size=34)
    with pytest.raises(DataError, match=r"row group 0 has 34 rows, but to be cut by time"):
        source(tmp_path).scan(days(3))
    lenient = source(tmp_path, bad_rows="dead_letter")
    first, second, third, fourth = (
        [row for each in read(lenient, days(4), index) for row in each.dead] for index in range(4)
    )
    lost = [[row.location["row"] for row in part] for part in (first, second, third, fourth)]
    assert lost == [[0], [0, 34], [34], []]
    write(path, table(evenly(START, 40, HOUR)), row_group_size=20)
    assert numbers(read(source(tmp_path), days(3))) == list(range(24))


def test_a_file_is_opened_once_for_all_row_groups_that_are_cut(tmp_path: Path) -> None:
    times = evenly(START, 48, HOUR / 2)
    path = str(
        write(tmp_path / "a.parquet", table(times[::-1]), row_group_size=3, write_statistics=False)
    )
    calls: list[str] = []

    @contextmanager
    def opened(name: str) -> Iterator[str]:
        calls.append(name)
        yield name

    from forebay.datatasks.sources.parquet.footers import read_footers

    footers = read_footers([path], opened, str, "at")
    calls.clear()
    planner = ParquetPlanner(opened, "at", "fail", str)
    found = planner.ranges(Candidates(pa.array([path]), footers, None, None), Spans(days(1)))
    assert (found.rows.sum(), planner.reads, calls) == (48, 16, [path])
