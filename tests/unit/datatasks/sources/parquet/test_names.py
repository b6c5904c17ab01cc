"""Columns whose names are like the paths of others: each is read, cast and cut as itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.parquet_source import DAY, START, days, open_task, source, write

from forebay.errors import DataError
from forebay.testing.source_suite import tasks_of

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
