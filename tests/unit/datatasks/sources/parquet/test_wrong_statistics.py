"""Rows that wrong statistics, or times beyond nanoseconds, would put where nobody reads them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parquet_source import DAY, HOUR, START, days, numbers, read, source, table, write

from forebay.datatasks.tasks import Chunk
from forebay.system.instants import to_us

SECOND = timedelta(seconds=1)


def misstate(path: Path, said: dict[datetime, datetime]) -> None:
    """Replace bounds in the footer: a writer's mistake."""
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:]
    for true, wrong in said.items():
        assert footer.count(struct.pack("<q", to_us(true)))
        footer = footer.replace(struct.pack("<q", to_us(true)), struct.pack("<q", to_us(wrong)))
    path.write_bytes(content[:start] + footer)


def outside(chunks: list[Chunk]) -> list[int]:
    """Of the rows in reading order: whether they are before the window, or after it."""
    return [
        side
        for chunk in chunks
        for side in (len(chunk.rows) * [0] if chunk.outside is None else chunk.outside.tolist())
    ]


def test_a_row_after_what_statistics_say_is_read_and_counted(tmp_path: Path) -> None:
    times = [START + HOUR, START + DAY + HOUR]
    misstate(write(tmp_path / "data/x.parquet", table([*times])), {times[1]: START + 2 * HOUR})
    opened = source(tmp_path)
    first = read(opened, days(2))
    assert (numbers(first), outside(first)) == ([0, 1], [0, 1])
    assert numbers(read(opened, days(2), 1)) == []


def test_bounds_that_contradict_each_other_say_nothing(tmp_path: Path) -> None:
    times = [START + HOUR, START + DAY + HOUR]
    path = write(tmp_path / "data/x.parquet", table([*times]))
    misstate(path, {times[0]: START + 9 * DAY})
    assert [numbers(read(source(tmp_path), days(2), day)) for day in range(2)] == [[0], [1]]


@pytest.mark.parametrize("day", range(4))
def test_a_row_beyond_a_group_that_is_cut_goes_with_its_nearest_time(
    tmp_path: Path, day: int
) -> None:
    """Of five days, the group says to have two: each window is planned alone, and none is lost."""
    times = [START, START + DAY, START + 2 * DAY - SECOND, START + 3 * DAY + HOUR]
    said = {times[0]: START + DAY - SECOND, times[3]: START + 2 * DAY}
    misstate(write(tmp_path / "data/x.parquet", table([*times])), said)
    chunks = read(source(tmp_path), days(4)[day : day + 1])
    expected = {0: ([0], [0]), 1: ([1, 2], [0, 0]), 2: ([3], [1])}
    assert (numbers(chunks), outside(chunks)) == expected.get(day, ([], []))


def test_rows_of_a_path_are_of_its_time_whatever_theirs_is(tmp_path: Path) -> None:
    write(tmp_path / "data/2026-03-01/x.parquet", table([START, START + DAY]))
    options = {"path": "data", "window_path": "{date}/*.parquet"}
    chunks = read(source(tmp_path, options), days(2))
    assert (numbers(chunks), outside(chunks)) == ([0, 1], [0, 0])


def test_times_beyond_nanoseconds_stay_what_they_are(tmp_path: Path) -> None:
    """As INT96, year 2554 would be 1970 where it becomes nanoseconds."""
    later = START + timedelta(microseconds=2**64 // 1000)
    rows = table([START, later, datetime(9999, 12, 31, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC)])
    path = write(tmp_path / "data/x.parquet", rows, use_deprecated_int96_timestamps=True)
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).physical_type == "INT96"
    opened = source(tmp_path)
    chunks = read(opened, days(1), columns=("n", "at"))
    assert numbers(chunks) == [0]
    assert pa.concat_batches([chunk.batch for chunk in chunks])["at"].to_pylist() == [START]
    midnight = later.replace(hour=0, minute=0, second=0, microsecond=0)
    assert numbers(read(opened, days(1, midnight))) == [1]
