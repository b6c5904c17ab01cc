"""Row ranges become tasks: bundled, split, ordered, and nothing gets lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.datatasks.sources.common.files.bundles import (
    BUNDLE_ROWS,
    RowRanges,
    fingerprints,
    to_tasks,
)
from forebay.datatasks.task_table import TASK_SCHEMA


def whole_files(rows: list[int], hours: list[int] | None = None) -> RowRanges:
    hours = hours or [0] * len(rows)
    return RowRanges.of(
        [(0, hours[n], n, 0, count, count, count * 10) for n, count in enumerate(rows)]
    )


def paths(count: int) -> pa.Array:
    return pa.array([f"f{n:05d}" for n in range(count)])


def test_no_pieces() -> None:
    assert to_tasks(RowRanges.of([]), paths(0)).equals(TASK_SCHEMA.empty_table())


def test_each_hour_s_rows_are_counted_from_its_first() -> None:
    small = BUNDLE_ROWS // 4
    tasks = to_tasks(whole_files([small] * 9, [0, 0, 0, 1, 1, 1, 1, 1, 1]), paths(9))
    assert [rows // small for rows in tasks["rows"].to_pylist()] == [3, 4, 2]


def test_a_task_has_64_times_1024_rows_and_a_file_that_is_split_four_times_as_many() -> None:
    assert to_tasks(whole_files([1024] * 66), paths(66))["rows"].to_pylist() == [65_536, 2_048]
    uneven = [300_000, 250_000, 250_000, 200_000]
    for size, count, wanted in ((1024, 257, [262_144, 1_024]), (50_000, 20, uneven)):
        groups = [(0, 0, 0, n * size, (n + 1) * size, size, 1) for n in range(count)]
        tasks = to_tasks(RowRanges.of(groups), paths(1))
        assert (tasks.schema, tasks["rows"].to_pylist()) == (TASK_SCHEMA, wanted)
        ranges = [each for task in tasks["ranges"].to_pylist() for each in task]
        assert [each["end"] for each in ranges] == np.cumsum(wanted).tolist()


def test_tasks_of_several_hours_are_in_the_order_of_hours() -> None:
    ranges = RowRanges.of([(0, 1, 0, 0, 9, 9, 1), (0, 0, 1, 0, 9, 9, 1)])
    tasks = to_tasks(ranges, paths(2), pa.array(["p0", "p1"]), bundle_hours=2)
    assert (tasks["hour"].to_pylist(), tasks["partition"].to_pylist()) == ([0, 1], ["p1", "p0"])


def test_neighbours_of_one_row_are_joined_and_ranges_without_rows_are_not() -> None:
    ones = RowRanges.of([(0, 0, 0, n, n + 1, 1, 1) for n in range(3)])
    (ranges,) = to_tasks(ones, paths(1))["ranges"].to_pylist()
    assert [(each["first"], each["end"], each["rows"]) for each in ranges] == [(0, 3, 3)]
    none = RowRanges.of([(0, 0, 0, 0, 1, 1, 1), (0, 0, 0, 1, 1, 0, 1)])
    (ranges,) = to_tasks(none, paths(1))["ranges"].to_pylist()
    assert [(each["first"], each["end"]) for each in ranges] == [(0, 1), (1, 1)]


def test_a_fingerprint_changes_with_the_files_of_its_span() -> None:
    ranges = RowRanges.of([(1, 0, 1, 0, 9, 9, 1), (0, 0, 0, 0, 9, 9, 1)])
    versions = pa.array(["5|mtime_ns=1", "6|mtime_ns=1"])
    before = fingerprints(3, ranges, paths(2), versions, "")
    assert ([len(each) for each in before], len(set(before))) == ([32, 32, 32], 3)
    for other in (
        (paths(2), pa.array(["5|mtime_ns=1", "6|mtime_ns=2"])),
        (paths(2), pa.array(["5|mtime_ns=1", "7|mtime_ns=1"])),
        (pa.array(["f00000", "g"]), versions),
    ):
        after = fingerprints(3, ranges, *other, "")
        assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
    assert not set(before) & set(fingerprints(3, ranges, paths(2), versions, "salt"))


ROWS = st.integers(1, 100_000)
PIECES = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 8), ROWS, st.booleans())


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=60))
def test_every_piece_is_in_exactly_one_task(drawn: list[tuple[int, int, int, int, bool]]) -> None:
    rows, first = [], np.zeros(9, np.int64)
    for span, hour, file, count, cut in drawn:
        start = int(first[file])
        rows.append((span, hour, file, start, start + count + cut, count, 1))
        first[file] = start + count + cut
    partitions = pa.array([f"p{n % 2}" for n in range(9)])
    tasks = to_tasks(RowRanges.of(rows), paths(9), partitions)
    keys = list(zip(tasks["span"].to_pylist(), tasks["hour"].to_pylist(), strict=True))
    assert keys == sorted(keys)
    found: dict[tuple[int, int, str], int] = {}
    for task in tasks.to_pylist():
        assert task["rows"] == sum(row_range["rows"] for row_range in task["ranges"])
        assert task["cut"] == any(u["rows"] != u["end"] - u["first"] for u in task["ranges"])
        for row_range in task["ranges"]:
            assert task["partition"] == f"p{int(row_range['path'][1:]) % 2}"
            key = (task["span"], task["hour"], row_range["path"])
            found[key] = found.get(key, 0) + row_range["rows"]
    wanted: dict[tuple[int, int, str], int] = {}
    for span, hour, file, _, _, count, _ in rows:
        key = (span, hour, f"f{file:05d}")
        wanted[key] = wanted.get(key, 0) + count
    assert found == wanted
