"""Times by which the rows of a row group are cut."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.datatasks.sources.parquet.footer_process import (
    ALL_NULL,
    KNOWN,
    TO_READ,
    UNKNOWN,
    bounds_of,
)
from forebay.datatasks.sources.parquet.footers import RowGroups, group_times
from forebay.errors import DataError

HOUR = 3_600_000_000


def group(tmp_path: Path, hours: list[int | None]) -> pq.ParquetFile:
    times = pa.array(
        [None if hour is None else hour * HOUR for hour in hours], pa.timestamp("us", "UTC")
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
    span = None if bounds is None else (bounds[0] * HOUR, bounds[1] * HOUR)
    found = group_times(group(tmp_path, hours), 0, "at", span)
    assert found.tolist() == [hour * HOUR for hour in expected]


def test_a_time_after_the_bounds_is_their_last(tmp_path: Path) -> None:
    found = group_times(group(tmp_path, [9]), 0, "at", (4 * HOUR, 6 * HOUR))
    assert found.tolist() == [6 * HOUR - 1]


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
        (DATE, {"physical_type": "INT32"}, (3 * 24 * HOUR, 5 * 24 * HOUR, KNOWN)),
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
    known: dict[str, Any] = {
        "has_min_max": True,
        "has_null_count": True,
        "null_count": 0,
        "num_values": 2,
    }
    known |= {"physical_type": "INT64", "logical_type": "", "min_raw": 3, "max_raw": 5}
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
