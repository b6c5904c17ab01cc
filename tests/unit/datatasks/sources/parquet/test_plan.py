"""Footers: times of row groups; impossible claims, or that take long, in bounded time."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cpu_limits import cpu_limit
from support.parquet_source import DAY, START, days, evenly, numbers, read, source, table, write

from forebay.config.specs.windows import HOUR
from forebay.datatasks.sources.common.row_groups import planner
from forebay.datatasks.sources.common.row_groups.planner import Candidates
from forebay.datatasks.sources.common.values.times import HOUR_US, Spans
from forebay.datatasks.sources.parquet import footer_process
from forebay.datatasks.sources.parquet.footer_process import (
    ALL_NULL,
    KNOWN,
    TO_READ,
    UNKNOWN,
    bounds_of,
)
from forebay.datatasks.sources.parquet.footers import RowGroups, group_times
from forebay.datatasks.sources.parquet.plan import ParquetPlanner
from forebay.errors import DataError
from forebay.system.instants import to_us
from forebay.testing.source_suite import tasks_of

# Files that are only a footer, written as Thrift's compact protocol by the numbers of fields in
# parquet.thrift: the caller decides what it claims.
_I32, _I64, _TEXT, _LIST, _STRUCT = 5, 6, 8, 9, 12
_MAGIC = b"PAR1"
_INT64, _TIMESTAMP_MICROS = 2, 10
_LONG_LIST = 15

Field = tuple[int, int, bytes]


class Claim(NamedTuple):
    """A row group: how many rows and bytes, and the bounds of its times in microseconds.

    low, high: None where it says that all are null.
    """

    rows: int
    low: int | None = None
    high: int | None = None
    size: int = 8


def forged_file(claims: Sequence[Claim]) -> bytes:
    name = b"at"
    elements = [
        _struct(_text(4, b"schema"), _int(5, 1, _I32)),
        _struct(
            _int(1, _INT64, _I32),
            _int(3, 1, _I32),
            _text(4, name),
            _int(6, _TIMESTAMP_MICROS, _I32),
        ),
    ]
    metadata = _struct(
        _int(1, 1, _I32),
        _list(2, _STRUCT, elements),
        _int(3, sum(claim.rows for claim in claims)),
        _list(4, _STRUCT, [_row_group(claim, name) for claim in claims]),
        _text(6, b"parquet-cpp-arrow version 26.0.0"),
        _list(7, _STRUCT, [_struct((1, _STRUCT, _struct()))]),
    )
    return _MAGIC + bytes(16) + metadata + struct.pack("<I", len(metadata)) + _MAGIC


def _row_group(claim: Claim, name: bytes) -> bytes:
    values = max(claim.rows, 0)
    bounds = [_int(3, values)]
    if claim.low is not None and claim.high is not None:
        low, high = struct.pack("<q", claim.low), struct.pack("<q", claim.high)
        bounds = [_int(3, 0), _text(5, high), _text(6, low)]
    chunk = _struct(
        _int(1, _INT64, _I32),
        _list(2, _I32, [_zigzag(0)]),
        _list(3, _TEXT, [_varint(len(name)) + name]),
        _int(4, 0, _I32),
        _int(5, values),
        _int(6, 8),
        _int(7, 8),
        _int(9, 4),
        (12, _STRUCT, _struct(*bounds)),
    )
    column = _struct(_int(2, 4), (3, _STRUCT, chunk))
    return _struct(_list(1, _STRUCT, [column]), _int(2, claim.size), _int(3, claim.rows))


def _struct(*fields: Field) -> bytes:
    content, last = b"", 0
    for number, kind, value in fields:
        content += bytes([(number - last) << 4 | kind]) + value
        last = number
    return content + b"\0"


def _int(number: int, value: int, kind: int = _I64) -> Field:
    return number, kind, _zigzag(value)


def _text(number: int, value: bytes) -> Field:
    return number, _TEXT, _varint(len(value)) + value


def _list(number: int, kind: int, items: Sequence[bytes]) -> Field:
    count = len(items)
    head = (
        bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([0xF0 | kind]) + _varint(count)
    )
    return number, _LIST, head + b"".join(items)


def _zigzag(value: int) -> bytes:
    return _varint(((value << 1) ^ (value >> 63)) & (2**64 - 1))


def _varint(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])


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


def group(tmp_path: Path, hours: list[int | None]) -> pq.ParquetFile:
    times = pa.array(
        [None if hour is None else hour * HOUR_US for hour in hours], pa.timestamp("us", "UTC")
    )
    pq.write_table(pa.table({"at": times}), tmp_path / "x.parquet")
    return pq.ParquetFile(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("hours", "bounds", "expected"),
    [
        ([3, 1, 2], None, [3, 1, 2]),
        ([3, None, 2], None, [3, 2, 2]),  # with the earliest
        *(([None, None], (4, 6), [4, 4]), ([3, None, 5], (4, 6), [4, 4, 5]), ([], None, [])),
    ],
)
def test_each_row_has_a_time(
    tmp_path: Path, hours: list[int | None], bounds: tuple[int, int] | None, expected: list[int]
) -> None:
    span = None if bounds is None else (bounds[0] * HOUR_US, bounds[1] * HOUR_US)
    found = group_times(group(tmp_path, hours), 0, "at", span)
    assert found.tolist() == [hour * HOUR_US for hour in expected]


def test_a_time_after_the_bounds_is_their_last(tmp_path: Path) -> None:
    found = group_times(group(tmp_path, [9]), 0, "at", (4 * HOUR_US, 6 * HOUR_US))
    assert found.tolist() == [6 * HOUR_US - 1]


def test_a_row_group_without_any_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row group 0 holds no time in 'at' at all"):
        group_times(group(tmp_path, [None, None]), 0, "at", None)


STAMP, DATE, NO_BOUNDS = pa.timestamp("us", "UTC"), pa.date32(), {"has_min_max": False}


@pytest.mark.parametrize(
    ("stored", "statistics", "expected"),
    [
        (STAMP, {}, (3, 5, KNOWN)),
        (pa.timestamp("ms"), {}, (3_000, 5_000, KNOWN)),
        (pa.timestamp("ns"), {"physical_type": "INT96"}, None),
        (pa.int64(), {}, None),
        (DATE, {"physical_type": "INT32"}, (3 * 24 * HOUR_US, 5 * 24 * HOUR_US, KNOWN)),
        (DATE, {}, None),
        (pa.int32(), {"physical_type": "INT32"}, None),
        (STAMP, NO_BOUNDS | {"num_values": 0, "null_count": 7}, ALL_NULL),
        (STAMP, NO_BOUNDS | {"num_values": 0, "null_count": 0}, None),
        (STAMP, NO_BOUNDS | {"num_values": 3, "null_count": 7}, None),
        (STAMP, NO_BOUNDS | {"num_values": 0, "has_null_count": False, "null_count": 7}, None),
        (STAMP, None, None),
    ],
)
def test_what_statistics_say_of_the_times_of_a_row_group(
    stored: pa.DataType, statistics: dict[str, Any] | None, expected: Any
) -> None:
    known = {"has_min_max": True, "has_null_count": True, "null_count": 0, "num_values": 2}
    types: dict[str, Any] = {"physical_type": "INT64", "logical_type": ""}
    known |= types | {"min_raw": 3, "max_raw": 5}
    found = bounds_of(None if statistics is None else SimpleNamespace(**known | statistics), stored)
    if expected in {None, ALL_NULL}:
        expected = (UNKNOWN, UNKNOWN, TO_READ if expected is None else ALL_NULL)
    assert found == expected


def test_the_file_that_was_asked_about_last_is_remembered() -> None:
    opened: list[str] = []

    def open_file(path: str) -> BytesIO:
        opened.append(path)
        stored = BytesIO()
        pq.write_table(pa.table({"n": range(10)}), stored, row_group_size=4)
        return BytesIO(stored.getvalue())

    groups = RowGroups(open_file)
    assert [groups.location("a", row)["row_group"] for row in (0, 3, 4, 9)] == [0, 0, 1, 2]
    groups.location("b", 0)
    groups.location("a", 0)
    assert opened == ["a", "b", "a"]
