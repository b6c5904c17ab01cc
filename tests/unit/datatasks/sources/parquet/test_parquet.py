"""The kind `parquet`: exact planned rows, damage, wrong statistics, one listing, odd places."""

from __future__ import annotations

import errno
import re
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.parquet_files import damage_file, rot
from support.parquet_source import (
    DAY,
    HOUR,
    START,
    days,
    evenly,
    numbers,
    open_task,
    read,
    source,
    table,
    write,
)

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.parquet import footers
from forebay.datatasks.tasks import Chunk, Position
from forebay.errors import DataError, InfrastructureError
from forebay.system.instants import to_us
from forebay.testing.source_suite import tasks_of


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    files=st.lists(
        st.lists(st.integers(0, 5 * 24 * 60), min_size=1, max_size=80), min_size=1, max_size=4
    ),
    group=st.integers(1, 40),
    sort=st.booleans(),
    unit=st.sampled_from(["ms", "us", "ns"]),
    chunk_rows=st.integers(1, 50),
)
def test_windows_hold_what_duckdb_counts(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int]],
    group: int,
    sort: bool,
    unit: str,
    chunk_rows: int,
) -> None:
    root = tmp_path_factory.mktemp("lake")
    for index, minutes in enumerate(files):
        times = [START + timedelta(minutes=m) for m in (sorted(minutes) if sort else minutes)]
        rows = table(times, index * 1000)
        rows = rows.set_column(0, "at", rows["at"].cast(pa.timestamp(unit, "UTC")))
        write(root / f"data/{index}.parquet", rows, row_group_size=group)
    opened, spans = source(root), days(4, START + DAY)
    scan = opened.scan(spans)
    for index, span in enumerate(spans):
        expected = duckdb.sql(
            f"SELECT n FROM '{root}/data/*.parquet' WHERE \"at\" >= '{span.start.isoformat()}' "
            f"AND \"at\" < '{span.end.isoformat()}' ORDER BY n"
        ).fetchall()
        found: list[int] = []
        for task in tasks_of(scan, spans, index):
            chunks = list(open_task(opened, task, chunk_rows=chunk_rows))
            assert task.rows == len(numbers(chunks))
            found += numbers(chunks)
        assert sorted(found) == [row[0] for row in expected]


def test_one_listing_whatever_the_number_of_windows(tmp_path: Path) -> None:
    for n in range(20):
        folder = tmp_path / f"data/date={(START + DAY * n).date()}"
        write(folder / "x.parquet", table(evenly(START + DAY * n, 24, HOUR)))
    opened = source(tmp_path, {"path": "data", "window_path": "date={date}/*.parquet"})
    assert opened.scan(days(1)).storage_calls == 1 + 1, "a listing, and the footer of one file"
    assert opened.scan(days(20)).storage_calls == 1 + 20


def test_only_row_groups_that_cross_a_border_are_read_to_plan(tmp_path: Path) -> None:
    write(tmp_path / "data/x.parquet", table(evenly(START, 480, HOUR)), row_group_size=32)
    scan = source(tmp_path).scan(days(20))
    crossing = sum(1 for low in range(0, 480, 32) if low // 24 != (low + 31) // 24)
    assert (scan.storage_calls, sum(scan.tasks["rows"].to_pylist())) == (1 + 1 + crossing, 480)
    assert not any(scan.tasks["cut"].to_pylist()), "sorted rows need no cutting while reading"


def test_row_ids_are_of_the_path_below_the_folder_and_the_row_in_the_file(tmp_path: Path) -> None:
    from forebay.datatasks.sources.common.values.row_ids import row_ids

    write(tmp_path / "data/a/x.parquet", table(evenly(START - HOUR, 4, HOUR)))
    for place in ("data", "data/**/*.parquet", f"file://{tmp_path}/data"):
        [chunk] = read(source(tmp_path, {"path": place}), days(1))
        assert np.array_equal(chunk.row_ids, row_ids("a/x.parquet", np.array([1, 2, 3])))
    [chunk] = read(source(tmp_path, {"path": "data/a/x.parquet"}), days(1))
    assert np.array_equal(chunk.row_ids, row_ids("x.parquet", np.array([1, 2, 3])))


def test_rows_without_a_time_go_with_their_row_group_and_are_bad(tmp_path: Path) -> None:
    times = [*evenly(START, 4, HOUR), None, *evenly(START + DAY, 4, HOUR), None]
    write(tmp_path / "data/x.parquet", table(times), row_group_size=5)
    spans = days(2)
    with pytest.raises(DataError, match="row 4: no time in column 'at'"):
        read(source(tmp_path), spans)
    opened = source(tmp_path, bad_rows="dead_letter")
    for index, row in ((0, 4), (1, 9)):
        chunks = read(opened, spans, index)
        assert len(numbers(chunks)) == 4
        dead = [each for chunk in chunks for each in chunk.dead]
        place = {"file": "x.parquet", "row_group": index, "row": row}
        assert [each.location for each in dead] == [place]


CASTS = {"date": pa.date32(), "seconds": pa.timestamp("s")}


@pytest.mark.parametrize("stored", ["text", "date", "int96", "seconds", "without statistics"])
def test_other_ways_to_store_times(tmp_path: Path, stored: str) -> None:
    times = evenly(START - DAY * 2, 5, DAY)
    rows, more = table(times), {}
    if stored == "text":
        rows = rows.set_column(0, "at", pa.array([str(each) for each in times]))
    elif stored in CASTS:
        rows = rows.set_column(0, "at", rows["at"].cast(CASTS[stored]))
    else:
        int96 = stored == "int96"
        more = {"use_deprecated_int96_timestamps": int96, "write_statistics": int96}
    write(tmp_path / "data/x.parquet", rows, **more)
    opened = source(tmp_path)
    assert opened.findings() == []
    assert [numbers(read(opened, days(3), index)) for index in range(3)] == [[2], [3], [4]]


def test_an_unreadable_file_counts_only_where_its_path_says(tmp_path: Path) -> None:
    write(tmp_path / "data/2026-03-01/x.parquet", table(evenly(START, 5, HOUR)))
    (tmp_path / "data/2026-03-02").mkdir()
    (tmp_path / "data/2026-03-02/y.parquet").write_bytes(b"")
    options = {"path": "data", "window_path": "{date}/*.parquet"}
    opened = source(tmp_path, options, bad_rows="dead_letter")
    first, lost = opened.scan(days(3)).tasks.to_pylist()
    assert (first["span"], lost["span"]) == (0, 1)
    assert (lost["hour"], lost["rows"], lost["size_bytes"]) == (0, 1, 0)
    assert source(tmp_path, options).scan(days(1)).tasks.num_rows == 1


@pytest.mark.parametrize("hit", ["event time", "other column"])
def test_damaged_pages_balance(tmp_path: Path, hit: str) -> None:
    """Rows of groups 1 of 4; the span cuts groups 0 and 3."""
    minutes = evenly(START - timedelta(minutes=50), 400, timedelta(minutes=1))
    stored: dict[str, Any] = {"row_group_size": 100, "compression": "none", "use_dictionary": False}
    path = write(tmp_path / "data/2026/x.parquet", table(minutes), **stored)
    spans = [Interval(START, START + timedelta(minutes=300))]
    more: dict[str, Any] = {"bad_rows": "dead_letter"}
    opened = source(tmp_path, **more)
    tasks = tasks_of(opened.scan(spans), spans, 0)
    column = pq.read_metadata(path).row_group(1).column(0 if hit == "event time" else 1)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset : column.data_page_offset + 20] = b"\xff" * 20
    rot(path, content)
    chunks = [chunk for task in tasks for chunk in open_task(opened, task, chunk_rows=30)]
    assert sum(each.rows for chunk in chunks for each in chunk.dead) == 100
    assert numbers(chunks) == [n for n in range(50, 350) if not 100 <= n < 200]
    assert sum(task.rows or 0 for task in tasks) == 300
    rescanned = tasks_of(source(tmp_path, **more).scan(spans), spans, 0)
    assert sum(task.rows or 0 for task in rescanned) == 300


def test_a_file_that_vanishes_after_planning(tmp_path: Path) -> None:
    path = write(tmp_path / "data/x.parquet", table(evenly(START, 5, HOUR)), row_group_size=4)
    opened = source(tmp_path, bad_rows="dead_letter")
    [task, *_] = tasks_of(opened.scan(days(1)), days(1), 0)
    assert opened.location(task, Position(0, 4)) == {"file": "x.parquet", "row_group": 1, "row": 4}
    path.unlink()
    with pytest.raises(DataError, match="is gone: plan the window again"):
        list(open_task(opened, task))


def test_a_cut_file_that_breaks_between_two_readers_is_an_error(tmp_path: Path) -> None:
    """How many of its rows belong to the window can no longer be told."""
    times = evenly(START + 20 * HOUR, 8, HOUR)
    path = write(tmp_path / "data/x.parquet", table([*times[::2], *times[1::2]]))
    opened = source(tmp_path, bad_rows="dead_letter")
    [task] = tasks_of(opened.scan(days(1)), days(1), 0)
    first = next(open_task(opened, task, chunk_rows=2))
    rot(path, bytes(path.stat().st_size))
    with pytest.raises(DataError, match=r"x\.parquet became unreadable while it was being read"):
        list(open_task(opened, task, first.end))


def test_a_file_whose_path_names_no_time_is_not_passed_over(tmp_path: Path) -> None:
    options = {"path": "data", "window_path": "date={date}/*.parquet"}
    write(tmp_path / "data/date=2026-03-01/x.parquet", table(evenly(START, 3, HOUR)))
    write(tmp_path / "data/date=__HIVE_DEFAULT_PARTITION__/x.parquet", table([None]))
    with pytest.raises(DataError, match="does not fit window_path"):
        source(tmp_path, options).scan(days(1))
    assert source(tmp_path, options).findings()[0].path == ("options", "window_path")


@pytest.mark.parametrize(
    "day", ["2026-02-30/00", "2026-13-01/00", "2026-03-01/24", "0000-01-01/00"]
)
def test_a_path_that_names_no_real_time_is_named(tmp_path: Path, day: str) -> None:
    options = {"path": "data", "window_path": "{date}/{hour}/*.parquet"}
    for name in ("2026-03-01/00", day, "2026-03-02/00"):
        write(tmp_path / f"data/{name}/x.parquet", table(evenly(START, 1, HOUR)))
    opened = source(tmp_path, options)
    named = f"path of .*/data/{day}/x.parquet names no day or hour that exists"
    with pytest.raises(DataError, match=named):
        opened.scan(days(1))
    (finding,) = opened.findings()
    assert finding.code == "no-time-in-path"
    assert re.search(named, finding.message)
    assert opened.describe().newest is None


def test_a_day_in_the_path_of_hourly_windows_needs_event_times(tmp_path: Path) -> None:
    options = {"path": "data", "window_path": "{date}/*.parquet"}
    write(tmp_path / "data/2026-03-01/x.parquet", table(evenly(START, 24, HOUR)))
    spans = [Interval(START + HOUR * n, START + HOUR * (n + 1)) for n in range(3)]
    with pytest.raises(DataError, match="covers more time than one window"):
        source(tmp_path, options, event_time=None).scan(spans)
    assert [numbers(read(source(tmp_path, options), spans, n)) for n in range(3)] == [[0], [1], [2]]


def test_rows_whose_time_contradicts_their_path_stay_in_the_path_s_window(tmp_path: Path) -> None:
    options = {"path": "data", "window_path": "{date}/*.parquet"}
    times = [START - DAY, START + HOUR, None, START + DAY * 3]
    write(tmp_path / "data/2026-03-01/x.parquet", table(times))
    chunks = read(source(tmp_path, options), days(1))
    assert (numbers(chunks), outside(chunks)) == ([0, 1, 2, 3], [0, 0, 0, 0])
    halves = [Interval(START, START + HOUR), Interval(START + HOUR, START + DAY)]
    opened = source(tmp_path, options)
    assert [numbers(read(opened, halves, index)) for index in (0, 1)] == [[0, 2], [1, 3]]


def ranges_of(scan: Any) -> list[tuple[int, int, int, int, int]]:
    """Span, hour, first, end and rows of every range of every task."""
    return [
        (task["span"], task["hour"], each["first"], each["end"], each["rows"])
        for task in scan.tasks.to_pylist()
        for each in task["ranges"]
    ]


def test_a_file_that_was_unreadable_when_it_was_planned_stays_one_dead_row(tmp_path: Path) -> None:
    path = tmp_path / "data/x.parquet"
    path.parent.mkdir()
    path.write_bytes(b"not yet")
    opened = source(tmp_path, bad_rows="dead_letter")
    scan = opened.scan(days(1))
    assert ranges_of(scan) == [(0, 0, 0, 0, 1)]
    (task,) = tasks_of(scan, days(1), 0)
    (chunk,) = open_task(opened, task)
    (dead,) = chunk.dead
    assert (len(chunk.rows), dead.rows, dead.position, chunk.end) == (0, 1, (0, 0), (1, 0))
    assert "cannot be read" in dead.reason
    (rest,) = open_task(opened, task, chunk.end)
    assert (len(rest.rows), rest.dead, rest.end) == (0, (), chunk.end)
    write(path, table(evenly(START, 5, HOUR)))
    with pytest.raises(DataError, match=r"x\.parquet was changed after it was planned"):
        list(open_task(opened, task))


@pytest.mark.parametrize("statistics", [True, False])
def test_a_row_group_whose_times_cannot_be_read_is_planned_as_a_whole(
    tmp_path: Path, statistics: bool
) -> None:
    write(tmp_path / "data/whole.parquet", table(evenly(START, 3, HOUR)))
    crossing = table(evenly(START + 20 * HOUR, 300, timedelta(minutes=3)), 100)
    path = write(
        tmp_path / "data/x.parquet", crossing, write_statistics=statistics, compression="none"
    )
    damage_file(path)
    with pytest.raises(DataError, match=r"x\.parquet, row group 0 cannot be read"):
        source(tmp_path).scan(days(2))
    opened = source(tmp_path, bad_rows="dead_letter")
    lost = [(0, 20, 0, 300, 300)] if statistics else [(0, 0, 0, 0, 1), (1, 0, 0, 0, 1)]
    assert sorted(ranges_of(opened.scan(days(2)))) == sorted([(0, 0, 0, 3, 3), *lost])
    later = [] if statistics else [(0, 0, 0, 0, 1)]
    assert ranges_of(opened.scan(days(1, START + DAY))) == later


def test_a_disk_that_fails_is_no_bad_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data/a.parquet", table([START]))

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "the disk fails")

    monkeypatch.setattr(footers, "arrow_file", fail)
    opened = source(tmp_path, bad_rows="dead_letter")
    with pytest.raises(InfrastructureError, match="the disk fails"):
        opened.describe()
    with pytest.raises(InfrastructureError, match="the disk fails"):
        opened.scan(days(1))


def test_a_row_group_without_times_goes_with_others_of_its_file(tmp_path: Path) -> None:
    write(tmp_path / "data/a.parquet", table([START]))
    write(tmp_path / "data/b.parquet", table([START + DAY, None]), row_group_size=1)
    scan = source(tmp_path, bad_rows="dead_letter").scan(days(2))
    assert [(span, rows) for span, _, _, _, rows in ranges_of(scan)] == [(0, 1), (1, 2)]


def test_a_row_without_a_time_has_the_first_hour_of_its_path(tmp_path: Path) -> None:
    write(tmp_path / "data/date=2026-03-01/a.parquet", table([None, START + 5 * HOUR]))
    opened = source(tmp_path, {"path": "data", "window_path": "date={date}/*.parquet"})
    (chunk,) = read(opened, days(1))
    assert chunk.hours.tolist() == [0, 5]


LATER = START + 3 * DAY
TIMES = pa.timestamp("us", "UTC")


def stored(name: str, others: dict[str, Any]) -> pa.Table:
    """The column of times comes after those that it might be taken for."""
    times = pa.array([START, START, START, START + DAY], TIMES)
    return pa.table({**others, name: times, "n.y": [5, 6, 7, 8]})


OTHERS = {
    "at.x": {"at": [{"x": LATER}] * 4, "At.X": [LATER] * 4, "n": [{"y": "text"}] * 4},
    "at.list.element": {"at": [[LATER]] * 4, "n.y.z": [1, 2, 3, 4]},
    "at.key_value.key": {"at": pa.array([[(LATER, 1)]] * 4, pa.map_(TIMES, pa.int64()))},
    "a.b.c": {"a": [{"b": {"c": LATER}}] * 4, "a.b": [{"c": LATER}] * 4},
    "a..b": {"a.": [{"b": LATER}] * 4, "a": [{".b": LATER, "": {"b": LATER}}] * 4},
    'it\'s "`.`"': {"it's": [LATER] * 4, "`.`": [LATER] * 4, 'IT\'S "`.`"': [LATER] * 4},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    """Of one row group statistics say the window, the other is cut."""
    write(tmp_path / "data/x.parquet", stored(name, OTHERS[name]), row_group_size=2)
    opened = source(tmp_path, columns={name: "timestamp", "n.y": "int"}, event_time=name)
    assert opened.findings() == []
    scan = opened.scan(days(4))
    found = [
        [
            tuple(row.values())
            for task in tasks_of(scan, days(4), day)
            for chunk in open_task(opened, task, columns=("n.y", name))
            for row in chunk.batch.to_pylist()
        ]
        for day in range(4)
    ]
    assert found == [[(5, START), (6, START), (7, START)], [(8, START + DAY)], [], []]


def test_a_path_is_no_name(tmp_path: Path) -> None:
    write(tmp_path / "data/x.parquet", pa.table({"at": [{"x": START}] * 2, "n": [1, 2]}))
    opened = source(tmp_path, columns={"at.x": "timestamp", "n": "int"}, event_time="at.x")
    assert "there is no column 'at.x'" in opened.findings()[0].message
    with pytest.raises(DataError, match=r"x\.parquet: there is no column 'at\.x'"):
        opened.scan(days(1))


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
