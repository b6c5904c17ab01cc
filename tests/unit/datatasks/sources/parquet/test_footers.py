"""Times by which the rows of a row group are cut."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.datatasks.sources.parquet.footers import group_times
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
        ([None, None], (4, 6), [4, 4]),
        ([3, None, 5], (4, 6), [4, 4, 5]),
        ([], None, []),
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
    with pytest.raises(DataError, match="row group 0 holds no 'at' at all"):
        group_times(group(tmp_path, [None, None]), 0, "at", None)
