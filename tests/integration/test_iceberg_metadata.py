"""Tables whose metadata another writer has made: paths, partitions and bounds as they may be."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.iceberg_tables import (
    CATALOG,
    TABLE,
    add_file,
    delete_positions,
    opened_catalog,
    opened_table,
)

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.tasks import Chunk
from forebay.errors import DataError
from forebay.system.instants import to_us
from forebay.testing.source_suite import tasks_of

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CUT = timedelta(microseconds=500)
DAYS = [Interval(START + DAY * n, START + DAY * (n + 1)) for n in range(5)]
AT = 2  # the field of the event time


def rows(*times: datetime | None, first: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + len(times)), pa.int64()),
            "at": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


def create(place: Path, transform: Any = None, source_id: int = AT) -> str:
    """A new table; its folder."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, TimestamptzType

    fields = NestedField(1, "id", LongType()), NestedField(AT, "at", TimestamptzType())
    names = [{"field-id": each.field_id, "names": [each.name]} for each in fields]
    partitions = [] if transform is None else [PartitionField(source_id, 1000, transform, "part")]
    with opened_catalog(place) as catalog:
        catalog.create_namespace("shop")
        catalog.create_table(
            TABLE,
            Schema(*fields),
            partition_spec=PartitionSpec(*partitions),
            properties={"schema.name-mapping.default": json.dumps(names)},
        )
    return f"{place}/lake/warehouse/shop/clicks"


def window(place: Path, day: int, **more: Any) -> list[Chunk]:
    """What a plan of this window alone reads."""
    fields: dict[str, Any] = {
        "name": "clicks",
        "kind": "iceberg",
        "options": {"catalog": CATALOG, "table": TABLE},
        "columns": {"id": "int", "at": "timestamp"},
        "event_time": "at",
    }
    spec, span = SourceSpec.model_validate(fields | more), DAYS[day : day + 1]
    with closing(open_source(spec, place)) as source:
        tasks = tasks_of(source.scan(span), span, 0)
        found = [chunk for task in tasks for chunk in source.open(task, None, ["id"], 7)]
    read = sum(len(chunk.rows) + sum(row.rows for row in chunk.dead) for chunk in found)
    assert sum(task.rows or 0 for task in tasks) == read
    return found


def ids(chunks: list[Chunk]) -> list[int]:
    return sorted(value for chunk in chunks for value in chunk.batch["id"].to_pylist())


def odd(chunks: list[Chunk]) -> int:
    return sum(int(each.outside.sum()) for each in chunks if each.outside is not None)


def bounds(low: datetime, high: datetime) -> dict[str, dict[int, bytes]]:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.types import TimestamptzType

    low_bytes, high_bytes = (to_bytes(TimestamptzType(), to_us(each)) for each in (low, high))
    return {"lower_bounds": {AT: low_bytes}, "upper_bounds": {AT: high_bytes}}


@pytest.mark.parametrize("spelling", ["file:", "file://", ""])
def test_paths_are_taken_as_they_are_written(tmp_path: Path, spelling: str) -> None:
    path = spelling + create(tmp_path) + "/data/x.parquet"
    with opened_table(tmp_path) as table:
        add_file(table, path, rows(*(START + HOUR * n for n in range(30))))
    assert ids(window(tmp_path, 0)) == list(range(24))
    with opened_table(tmp_path) as table:
        delete_positions(table, path, [3], place=f"{spelling}{tmp_path}/deletes.parquet")
    with opened_table(tmp_path) as table:
        left = table.scan().to_arrow()["id"].to_pylist()
    assert len(left) == 29
    assert ids(window(tmp_path, 0)) == left[:23]
    assert ids(window(tmp_path, 1)) == left[23:]


def test_a_name_that_looks_like_a_whole_path(tmp_path: Path) -> None:
    folder = create(tmp_path)
    with opened_table(tmp_path) as table:
        for number, name in enumerate(["s3:x.parquet", "/x.parquet", "at=12:30/x.parquet"]):
            add_file(table, f"file://{folder}/{name}", rows(START, first=number))
    assert ids(window(tmp_path, 0)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("file:{}/data/x.parquet", "{}/data/x.parquet"),
        ("file://{}/data/x.parquet", "file://{}/data/x.parquet"),
        ("file://{}/data/x.parquet", "file://{}/data/../data/x.parquet"),
    ],
)
def test_a_file_that_a_table_names_twice_is_refused(tmp_path: Path, path: str, other: str) -> None:
    folder = create(tmp_path)
    with opened_table(tmp_path) as table:
        for spelled in (path, other):
            add_file(table, spelled.format(folder), rows(START))
    with pytest.raises(DataError, match=r"x\.parquet is in the table twice"):
        window(tmp_path, 0)


@pytest.mark.parametrize("kind", ["Day", "Hour", "Month", "Year", "Identity", "Bucket", "Truncate"])
def test_a_null_partition_is_one_dead_letter(tmp_path: Path, kind: str) -> None:
    from pyiceberg import transforms
    from pyiceberg.typedef import Record

    transform = getattr(transforms, f"{kind}Transform")
    made = transform(4) if kind in {"Bucket", "Truncate"} else transform()
    days = (START - datetime(1970, 1, 1, tzinfo=UTC)).days
    parts = {"Day": days, "Hour": 24 * days, "Month": 56 * 12 + 2, "Year": 56}
    folder = create(tmp_path, made, 1 if kind == "Truncate" else AT)
    part = Record(parts.get(kind, to_us(START) if kind == "Identity" else 0))
    with opened_table(tmp_path) as table:
        add_file(table, f"{folder}/a.parquet", rows(START), partition=part)
        add_file(table, f"{folder}/b.parquet", rows(None, first=1), partition=Record(None))
    with pytest.raises(DataError, match=r"b\.parquet cannot be read: no row has a time in 'at'"):
        window(tmp_path, 0)
    chunks = window(tmp_path, 0, bad_rows="dead_letter")
    assert ids(chunks) == [0]
    dead = [row for chunk in chunks for row in chunk.dead]
    assert [(row.rows, "had no time" in row.reason) for row in dead] == [(1, True)]


def test_rows_without_times_beside_delete_files(tmp_path: Path) -> None:
    path = create(tmp_path) + "/data/x.parquet"
    with opened_table(tmp_path) as table:
        add_file(table, path, rows(None, None, None))
        delete_positions(table, path, [0])
    with pytest.raises(DataError, match=r"x\.parquet: no row has a time in 'at'"):
        window(tmp_path, 0)
    (dead,) = [row for each in window(tmp_path, 0, bad_rows="dead_letter") for row in each.dead]
    assert dead.rows == 2


@pytest.mark.parametrize("deleted", [False, True])
def test_a_bound_that_is_some_microseconds_too_low(tmp_path: Path, deleted: bool) -> None:
    """Each window is planned alone: rows of the first instants of a day are of that day."""
    path = create(tmp_path) + "/data/x.parquet"
    times = [START + HOUR, START + DAY - CUT, START + DAY + CUT, START]
    cut = bounds(START, START + DAY - timedelta(microseconds=1))
    with opened_table(tmp_path) as table:
        add_file(table, path, rows(*times), **cut)
        if deleted:
            delete_positions(table, path, [3])
    first, second, third = (window(tmp_path, day) for day in range(3))
    assert (ids(first), ids(second), ids(third)) == ([0, 1] if deleted else [0, 1, 3], [2], [])
    assert odd(first) == odd(second) == 0


@pytest.mark.guarantee(
    "the statistics of a Parquet file, or the bounds in an Iceberg manifest, leave out times of"
    " its rows",
    "nothing; each row is in one window, and counted there if its time is of another "
    "(`odd_timestamps`)",
)
@pytest.mark.parametrize(
    ("said", "groups", "deleted"),
    [((1, 1), 5, False), ((1, 2), 5, False), ((1, 2), 1, False), ((1, 2), 5, True)],
)
def test_rows_outside_of_wrong_bounds_are_read_and_counted(
    tmp_path: Path, said: tuple[int, int], groups: int, deleted: bool
) -> None:
    """By windows that are planned alone: none is lost, none is read twice."""
    path = create(tmp_path) + "/data/x.parquet"
    times = [START + DAY * day + HOUR for day in range(5)]
    wrong = bounds(times[said[0]] - HOUR, times[said[1]] + HOUR)
    with opened_table(tmp_path) as table:
        add_file(table, path, rows(*times), row_group_size=groups, **wrong)
        if deleted:
            delete_positions(table, path, [1])
    chunks = [window(tmp_path, day) for day in range(5)]
    read = sorted(number for each in chunks for number in ids(each))
    assert read == ([0, 2, 3, 4] if deleted else [0, 1, 2, 3, 4])
    expected = {(1, 1): [0, 4, 0, 0, 0], (1, 2): [0, 1, 2, 0, 0]}[said]
    assert [odd(each) for each in chunks] == expected
