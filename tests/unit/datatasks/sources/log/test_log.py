"""The kind `log`: atomic segments, holes, torn files, readiness, several writers."""

from __future__ import annotations

import os
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.cpu_limits import cpu_limit
from support.hostile.shared_parts import shared_batch
from support.memory_peak import MemoryPeak
from support.there import there

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.datatasks.sources.log.writer import LogWriter, parse_segment
from forebay.datatasks.tasks import Chunk, Position
from forebay.errors import ConfigError, DataError, InfrastructureError
from forebay.testing.source_suite import tasks_of

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, MILLISECOND = timedelta(hours=1), timedelta(milliseconds=1)
DAYS = [Interval(START, START + HOUR * 24), Interval(START + HOUR * 24, START + HOUR * 48)]


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"n": np.arange(first, first + count)})


def segment(root: Path, count: int = 5) -> Path:
    return there(LogWriter(root / "log", 0).append(rows(0, count), START))


def source(root: Path, **more: Any) -> Source:
    fields = {"name": "s", "kind": "log", "options": {"path": "log"}, "columns": {"n": "int"}}
    return open_source(SourceSpec.model_validate(fields | more), root)


def read(opened: Source, column: str = "n", chunk_rows: int = 10) -> list[Chunk]:
    tasks = tasks_of(opened.scan(DAYS), DAYS, 0)
    return [chunk for task in tasks for chunk in opened.open(task, None, [column], chunk_rows)]


def values(chunks: list[Chunk], column: str = "n") -> list[Any]:
    return [value for chunk in chunks for value in chunk.batch.column(column).to_pylist()]


def numbers(opened: Source) -> list[Any]:
    return values(read(opened))


def test_names_say_offset_rows_and_commit_time(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log", 0)
    writer.append(rows(0, 3), START)
    LogWriter(tmp_path / "log", "0").append(rows(3, 2), START + HOUR)
    assert writer.append(rows(0, 0), START + HOUR) is None
    ms = int(START.timestamp() * 1000)
    visible = [path.name for path in (tmp_path / "log/0").iterdir() if path.name[0] != "."]
    assert sorted(visible) == [
        *(f"{0:020d}-{3:08d}-{ms:015d}.arrow", f"{3:020d}-{2:08d}-{ms + 3_600_000:015d}.arrow")
    ]


def test_writers_of_one_partition_take_turns(tmp_path: Path) -> None:
    def append() -> None:
        writer = LogWriter(tmp_path / "log", 0)
        for _ in range(20):
            writer.append(rows(0, 3), START)

    threads = [threading.Thread(target=append) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbers(source(tmp_path))) == 180


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file in the way")
    with pytest.raises(InfrastructureError, match="log"):
        LogWriter(tmp_path / "log", 0).append(rows(0, 1), START)


def test_row_ids_are_of_partition_and_offset(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log", 7)
    for n in range(3):
        writer.append(rows(n * 5, 5), START + HOUR * (n + 1) - MILLISECOND)
    opened = source(tmp_path)
    tasks = tasks_of(opened.scan(DAYS), DAYS, 0)
    assert [(task.hour, task.partition, len(task.ranges)) for task in tasks] == [(0, "7", 3)]
    chunks = [chunk for task in tasks for chunk in opened.open(task, None, ["n"], 100)]
    ids = np.concatenate([chunk.row_ids for chunk in chunks])
    assert np.array_equal(ids, row_ids("7", np.arange(15)))
    hours = np.concatenate([chunk.hours for chunk in chunks])
    assert hours.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    place = {"file": tasks[0].ranges[2].path, "partition": "7", "offset": 11, "row": 1}
    assert opened.location(tasks[0], Position(2, 1)) == place


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_a_hole_anywhere_in_a_partition_is_bad_data(tmp_path: Path, lost: int) -> None:
    writer = LogWriter(tmp_path / "log", 0)
    LogWriter(tmp_path / "log", 1).append(rows(0, 5), START)
    paths = [writer.append(rows(n, 1), START + HOUR * n * 10) for n in range(6)]
    there(paths[lost]).unlink()
    with pytest.raises(DataError, match=f"partition 0 has a gap.*offset {lost}"):
        source(tmp_path, bad_rows="dead_letter").scan(DAYS[1:])


def test_segments_that_overlap_are_bad_data(tmp_path: Path) -> None:
    path = segment(tmp_path)
    twin = path.with_name(path.name.replace(f"{0:020d}", f"{3:020d}"))
    twin.write_bytes(path.read_bytes())
    with pytest.raises(DataError, match="overlap"):
        source(tmp_path).scan(DAYS)


def test_temporary_and_foreign_files_are_no_segments(tmp_path: Path) -> None:
    path = segment(tmp_path)
    for name in ("notes.txt", "zz", f".{path.name}.77"):
        path.with_name(name).write_text("of somebody else")
    (tmp_path / "log" / "readme.arrow").write_text("x")
    assert numbers(source(tmp_path)) == list(range(5))
    second = there(LogWriter(tmp_path / "log", 0).append(rows(5, 1), START))
    assert second.name.startswith(f"{5:020d}-")


@pytest.mark.parametrize("damage", ["cut", "empty", "fewer rows", "more rows"])
def test_a_damaged_segment_is_named_or_counted(tmp_path: Path, damage: str) -> None:
    path = segment(tmp_path, 50)
    other = segment(tmp_path / "other", 40 if damage == "fewer rows" else 60)
    content = {"cut": path.read_bytes()[:500], "empty": b""}.get(damage, other.read_bytes())
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        numbers(source(tmp_path))
    chunks = read(source(tmp_path, bad_rows="dead_letter"))
    dead = sum(row.rows for chunk in chunks for row in chunk.dead)
    assert (len(values(chunks)) + dead, dead > 0, chunks[-1].end) == (50, True, Position(1, 0))


def test_nothing_there(tmp_path: Path) -> None:
    opened = source(tmp_path)
    assert "does not exist" in opened.describe().empty_reason
    with pytest.raises(DataError, match="does not exist"):
        opened.scan(DAYS)
    (tmp_path / "log").mkdir()
    assert (opened.scan(DAYS).tasks.num_rows, opened.findings()[0].code) == (0, "nothing-matched")


def test_a_finding_says_whether_a_column_is_missing_or_of_another_type(tmp_path: Path) -> None:
    LogWriter(tmp_path / "log", 0).append(rows(0, 5), START)
    found = source(tmp_path, columns={"n": "string", "m": "int"}).findings()
    assert [each.path[1] for each in found] == ["n", "m"]
    assert [each.code for each in found] == ["column-type", "column-missing"]


def test_a_later_segment_makes_the_windows_before_it_ready(tmp_path: Path) -> None:
    opened = source(tmp_path, ready={"marker": "_END"})
    assert not opened.readiness(DAYS[0]).ready, "there is no log yet"
    LogWriter(tmp_path / "log", 0).append(rows(0, 5), START + HOUR * 30)
    assert [each.ready for each in opened.marked(DAYS, "_END")] == [True, False]
    LogWriter(tmp_path / "log", 1).append(rows(0, 5), DAYS[0].end)
    assert [each.ready for each in opened.marked(DAYS, "_END")] == [True, False]
    assert opened.readiness(DAYS[0]).ready
    LogWriter(tmp_path / "log", 0).append(rows(5, 5), DAYS[1].end)
    LogWriter(tmp_path / "log", 1).append(rows(5, 5), DAYS[1].end)
    assert opened.readiness(DAYS[1]).ready, "what comes at its end is no row of it"


def test_partitions_whose_names_begin_with_another_s(tmp_path: Path) -> None:
    names = ["eu", "eu-1", "eu 2", "eu.3", "eu0"]  # all but the last come before `eu/` as paths
    for place, name in enumerate(names):
        LogWriter(tmp_path / "log", name).append_all(
            (rows(100 * place + 5 * day, 5), span.start) for day, span in enumerate(DAYS)
        )
    opened = source(tmp_path, ready={"marker": "_END"})
    scan = opened.scan(DAYS)
    assert scan.offsets == [dict.fromkeys(names, (5 * day, 5 * day + 5)) for day in range(2)]
    for day, span in enumerate(DAYS):
        found = {
            task.partition: values(list(opened.open(task, None, ["n"], 10)))
            for task in tasks_of(scan, DAYS, day)
        }
        first = 5 * day
        assert found == {
            name: [*range(100 * place + first, 100 * place + first + 5)]
            for place, name in enumerate(names)
        }
        assert opened.readiness(span).ready == (day == 0)
    for name in names:
        assert opened.readiness(DAYS[1]).reason.startswith("partition")
        (tmp_path / "log" / name / "_END").touch()
    assert opened.readiness(DAYS[1]).ready


def test_a_segment_without_rows_is_no_task(tmp_path: Path) -> None:
    path = segment(tmp_path)
    empty = path.with_name(path.name.replace("-00000005-", "-00000000-"))
    path.rename(empty)
    with pa.ipc.new_file(empty, rows(0, 1).schema):
        pass
    assert source(tmp_path).scan(DAYS).tasks.num_rows == 0


def test_a_segment_has_as_many_rows_as_its_name_can_say(tmp_path: Path) -> None:
    many = pa.table({"n": pa.nulls(10**8)})
    with pytest.raises(ValueError, match="at most 99999999 rows, not 100000000"):
        LogWriter(tmp_path, 0).append(many, START)
    assert LogWriter(tmp_path, 0).append(many.slice(0, 10), START) is not None


def test_equal_commit_times_are_fine_and_earlier_ones_are_not(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    assert writer.append(rows(0, 1), START) is not None
    assert writer.append(rows(1, 1), START) is not None
    with pytest.raises(ValueError, match="commit times must not fall"):
        writer.append(rows(2, 1), START - MILLISECOND)
    begin, other = datetime(1970, 1, 1, tzinfo=UTC), LogWriter(tmp_path, 1)
    with pytest.raises(ValueError, match="must not fall"):
        other.append(rows(0, 1), begin - MILLISECOND)
    assert other.append(rows(0, 1), begin) is not None, "no commit is before 1970"


def test_a_damaged_segment_ends_where_the_next_begins(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log", 0)
    first = there(writer.append(rows(0, 5), START))
    writer.append(rows(5, 5), START)
    first.write_bytes(b"")
    lost, *_ = read(source(tmp_path, bad_rows="dead_letter"), chunk_rows=1)
    assert (lost.end, [row.rows for row in lost.dead]) == (Position(1, 0), [5])


def test_rows_behind_those_of_a_segment_s_name_are_left_out(tmp_path: Path) -> None:
    path = segment(tmp_path)
    with pa.ipc.new_file(path, rows(0, 1).schema) as file:
        file.write_table(rows(0, 5))
        file.write_table(rows(5, 5))
    chunks = read(source(tmp_path, bad_rows="dead_letter"), chunk_rows=100)
    assert (values(chunks), [row for chunk in chunks for row in chunk.dead]) == ([*range(5)], [])


def test_a_name_of_another_form_is_no_segment() -> None:
    with pytest.raises(ValueError, match=r"'a.arrow' is not a log segment"):
        parse_segment("a.arrow")


@pytest.mark.parametrize("path", ["log/*", "s3://bucket/log"])
def test_a_log_is_one_mounted_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="a log is one folder of a mounted file system"):
        source(tmp_path, options={"path": path})


def text_source(root: Path, table: pa.Table, **more: Any) -> Source:
    """One segment as somebody else may write it."""
    path = there(LogWriter(root / "log", 0).append(table.select([0]), START))
    options = pa.ipc.IpcWriteOptions(compression=more.pop("compression", None))
    with pa.ipc.new_file(path, table.schema, options=options) as file:
        file.write_table(table)
    return source(root, columns={"s": "string"}, **more)


def read_texts(opened: Source) -> tuple[list[str], list[tuple[int, str]]]:
    chunks = read(opened, "s")
    dead = [(row.rows, row.reason) for chunk in chunks for row in chunk.dead]
    return values(chunks, "s"), dead


def test_a_wrong_offset_is_not_followed(tmp_path: Path) -> None:
    table = pa.table({"s": [f"text {n:03}" for n in range(30)]})
    opened = text_source(tmp_path, table, bad_rows="dead_letter")
    (path,) = (tmp_path / "log/0").glob("*.arrow")
    offsets = np.arange(0, 8 * 31, 8, np.int32)
    right, offsets[20] = offsets.tobytes(), 2**31 - 1
    path.write_bytes(path.read_bytes().replace(right, offsets.tobytes()))
    texts, [(count, reason)] = read_texts(opened)
    assert (texts, count) == ([], 30)
    assert "offset for slot 20 out of bounds: 2147483647 > 240" in reason
    failing = source(tmp_path, columns={"s": "string"})
    with pytest.raises(DataError, match=r"offset 0, row 0\): cannot be read: .* out of bounds"):
        read_texts(failing)


def test_views_of_a_segment_are_dead_letters_or_an_error(tmp_path: Path) -> None:
    table = pa.table({"s": pa.array(["a", "b"]).cast(pa.string_view())})
    opened = text_source(tmp_path, table, bad_rows="dead_letter")
    assert [each.code for each in opened.findings()] == ["column-type"]
    texts, [(count, reason)] = read_texts(opened)
    assert (texts, count) == ([], 2)
    assert "column 's' is stored as string_view, and string_view is not read" in reason
    with pytest.raises(DataError, match="string_view is not read"):
        read_texts(source(tmp_path, columns={"s": "string"}))


def test_columns_of_a_segment_that_nobody_declared_are_not_decoded(tmp_path: Path) -> None:
    words = pa.array(["a" * (30 << 20)])
    long = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), words)
    zeros, view = pa.array([np.zeros(1 << 23)]), words.cast(pa.string_view())
    table = pa.table({"s": ["a"], "long": long, "zeros": zeros, "view": view})
    opened = text_source(tmp_path, table, compression="zstd")
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert read_texts(opened) == (["a"], [])
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 1 << 20


@pytest.mark.parametrize("kind", ["values", "a dictionary", "a text in many rows"])
def test_a_bomb_in_a_segment_is_not_decoded(tmp_path: Path, kind: str) -> None:
    words = pa.array(["a" * (300 << 20)])
    rows = 1 if kind != "a text in many rows" else 300
    column = words
    if kind != "values":
        text = words if rows == 1 else pa.array(["a" * (1 << 20)])
        column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), text)
    opened = text_source(
        tmp_path, pa.table({"s": column}), compression="zstd", bad_rows="dead_letter"
    )
    texts, dead = read_texts(opened)
    assert texts in ([], ["a" * (1 << 20)] * rows)
    if rows == 1:
        [(count, reason)] = dead
        assert count == 1
        assert re.search(r"takes? 314,[0-9,]+ bytes, and at most 268,435,456 are read", reason)


def test_batches_of_a_segment_that_are_one_are_not_kept_for_each(tmp_path: Path) -> None:
    path = segment(tmp_path, 3)
    path.write_bytes(shared_batch(2000, 50_000))
    memory = MemoryPeak(os.getpid())
    with cpu_limit("a segment of one batch", 2):
        chunks = read(source(tmp_path, bad_rows="dead_letter"))
    [dead] = [row for chunk in chunks for row in chunk.dead]
    assert dead.rows == 3
    assert memory.growth < 64 << 20


@pytest.mark.parametrize("base", ["99999999999999999999", "09223372036854775807"])
def test_a_segment_behind_the_last_offset_is_named(tmp_path: Path, base: str) -> None:
    path = segment(tmp_path, 3)
    path.rename(path.with_name(base + path.name[20:]))
    with pytest.raises(DataError, match=rf"segment 0/{base}-.* offset that no partition reaches"):
        source(tmp_path).scan(DAYS)
