"""Reading ranges of Parquet files: what is opened and read, and what is counted on failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.files.versions import PlannedFile
from forebay.datatasks.sources.parquet import open_files
from forebay.datatasks.sources.parquet.footers import group_ends
from forebay.datatasks.sources.parquet.open_files import FileKeeper, LastFile
from forebay.datatasks.sources.parquet.read import Bounds, ParquetReader
from forebay.datatasks.tasks import Chunk, DataTask, Position, RowRange
from forebay.errors import DataError
from forebay.system.instants import to_us

START = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SIZES = {"size_bytes": 0, "version": ""}


def write(path: Path, groups: list[int]) -> None:
    """One row a minute, in row groups of these sizes; numbers count from 0."""
    count = sum(groups)
    times = pa.array([START + number * MINUTE for number in range(count)])
    rows = pa.table({"n": pa.array(np.arange(count)), "at": times})
    with pq.ParquetWriter(path, rows.schema, compression="none") as writer:
        first = 0
        for group in groups:
            writer.write_table(rows.slice(first, group))
            first += group


def task(*ranges: tuple[str, int, int, int], minutes: int = 24 * 60) -> DataTask:
    """(file, first, end, rows) of each range; data ends after so many minutes."""
    names = ("path", "first", "end", "rows")
    parts = [dict(zip(names, each, strict=True)) | SIZES for each in ranges]
    cut = any(rows != end - first for _, first, end, rows in ranges)
    rows = sum(each[3] for each in ranges)
    row = {"hour": 0, "partition": "", "ranges": parts, "rows": rows, "cut": cut}
    return DataTask.of_row(row, "s/0", "s", "2026-03-01", Interval(START, START + minutes * MINUTE))


def reader(root: Path, bounds: Bounds | None = None, **more: Any) -> ParquetReader:
    fields = {"name": "s", "kind": "parquet", "options": {"path": "."}, "event_time": "at"}
    columns = {"columns": {"at": "timestamp", "n": "int"}}
    spec = SourceSpec.model_validate(fields | columns | more)
    keeper = FileKeeper(lambda path: (root / path).open("rb"))

    def unversioned(row_range: RowRange, _window: str) -> PlannedFile:
        return PlannedFile(row_range.path, row_range.version, str, "")

    return ParquetReader(spec, keeper, unversioned, lambda _path: bounds)


def damage(path: Path, group: int, column: int) -> None:
    """Overwrite the pages of one column of one row group; the footer stays whole."""
    part = pq.read_metadata(path).row_group(group).column(column)
    begin = part.dictionary_page_offset or part.data_page_offset
    content = bytearray(path.read_bytes())
    content[begin : begin + part.total_compressed_size] = b"\xff" * part.total_compressed_size
    path.write_bytes(content)


def numbers(chunks: list[Chunk]) -> list[int]:
    return [n for chunk in chunks for n in chunk.batch.column("n").to_pylist()]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranges")


class Watched(pq.ParquetFile):  # type: ignore[misc]
    asked: ClassVar[list[list[int]]] = []
    decoded: ClassVar[list[pa.RecordBatch]] = []

    def iter_batches(self, *args: Any, **more: Any) -> Iterator[pa.RecordBatch]:
        if more["columns"] == ["at"]:  # where rows are cut
            yield from super().iter_batches(*args, **more)
            return
        self.asked.append(more["row_groups"])
        for batch in super().iter_batches(*args, **more):
            self.decoded.append(batch)
            yield batch


@contextmanager
def watched() -> Iterator[type[Watched]]:
    Watched.asked.clear()
    Watched.decoded.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq, "ParquetFile", Watched)
        yield Watched


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    groups=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    data=st.data(),
    chunk_rows=st.integers(1, 12),
    is_cut=st.booleans(),
)
def test_only_what_is_wanted_is_read_and_small_row_groups_together(
    root: Path, groups: list[int], data: Any, chunk_rows: int, is_cut: bool
) -> None:
    write(root / "a", groups)
    count = sum(groups)
    first = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(first + 1, count))
    start = data.draw(st.integers(0, end - 1))
    minutes = data.draw(st.integers(first + 1, end - 1)) if is_cut and end > first + 1 else count
    wanted = [n for n in range(max(first, start), end) if n < minutes]
    with watched() as seen:
        only = task(("a", first, end, min(end, minutes) - first), minutes=minutes)
        found = list(reader(root).read(only, Position(0, start), ["n"], chunk_rows))
    assert (numbers(found), [int(row) for chunk in found for row in chunk.rows]) == (wanted, wanted)
    assert found[-1].end == Position(1, 0)
    ends = np.cumsum(groups)
    begins = ends - groups
    near = [n for n in range(len(groups)) if ends[n] > max(first, start) and begins[n] < end]
    assert [group for each in seen.asked for group in each] == near, "each once, and no other"
    assert max(each["n"][0].as_py() for each in seen.decoded) < end, "nothing after the range"
    sizes = [sum(groups[group] for group in each) for each in seen.asked]
    if only.cut:
        assert [len(each) for each in seen.asked] == [1] * len(seen.asked)
    else:
        for each, size in zip(seen.asked, sizes, strict=True):
            assert size <= chunk_rows or divided([groups[n] for n in each], chunk_rows)
        following = [groups[each[0]] for each in seen.asked[1:]]
        assert all(
            size + after > chunk_rows for size, after in zip(sizes[:-1], following, strict=True)
        )


def divided(groups: list[int], chunk_rows: int) -> bool:
    """Whether chunks of one size hold row groups as wholes or equal parts; the last may be short.

    Those that fit into one chunk all together may have any size.
    """
    parts = -(-groups[0] // chunk_rows)
    part = -(-groups[0] // parts)
    before = [sum(groups[:n]) for n in range(1, len(groups))]
    return all(
        rows % part == 0
        for rows, group in zip(before, groups[1:], strict=True)
        if rows + group > chunk_rows
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 12))
def test_no_row_is_decoded_before_all_before_it_are_given_out(
    root: Path, groups: list[int], chunk_rows: int
) -> None:
    write(root / "a", groups)
    given_out = 0
    with watched() as seen:
        whole = task(("a", 0, sum(groups), sum(groups)))
        for chunk in reader(root).read(whole, Position(0, 0), ["n"], chunk_rows):
            given_out += len(chunk.rows)
            assert len(chunk.rows) <= chunk_rows
            assert sum(batch.num_rows for batch in seen.decoded) == given_out
    assert given_out == sum(groups)


def test_a_position_after_a_range_is_the_start_of_the_next(tmp_path: Path) -> None:
    write(tmp_path / "a", [3])
    write(tmp_path / "b", [6])
    both = task(("a", 0, 3, 3), ("b", 2, 6, 4))
    found = list(reader(tmp_path).read(both, None, ["n"], 3))
    assert numbers(found) == [0, 1, 2, 2, 3, 4, 5]
    assert [chunk.end for chunk in found] == [(1, 0), (1, 4), (2, 0)]
    again = list(reader(tmp_path).read(both, Position(0, 2), ["n"], 3))
    assert numbers(again) == [2, 2, 3, 4, 5], "a row of the first file says nothing of the second"


def test_rows_without_times_of_their_own_have_the_hour_of_their_path(tmp_path: Path) -> None:
    write(tmp_path / "a", [3])
    from_path = (to_us(START + 5 * 60 * MINUTE), to_us(START + 6 * 60 * MINUTE))
    for bounds, hour in ((from_path, 5), (None, 0)):
        opened = reader(tmp_path, bounds, event_time=None)
        (chunk,) = opened.read(task(("a", 0, 3, 3)), None, ["n"], 9)
        assert chunk.hours.tolist() == [hour] * 3
        assert (numbers([chunk]), chunk.dead) == ([0, 1, 2], ())


def test_a_file_that_lost_its_event_time_after_planning(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a")
    with pytest.raises(DataError, match="there is no column 'at'"):
        list(reader(tmp_path).read(task(("a", 0, 2, 2)), None, ["n"], 9))


def test_what_is_counted_of_a_file_that_became_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no parquet")
    whole, cut = task(("a", 2, 10, 8)), task(("a", 2, 10, 5))
    opened = reader(tmp_path, bad_rows="dead_letter")
    for given_task, position, rows in (
        *((whole, None, 8), (whole, Position(0, 1), 8), (whole, Position(0, 4), 6)),
        *((cut, None, 5), (cut, Position(0, 2), 5)),
    ):
        (chunk,) = opened.read(given_task, position, ["n"], 9)
        assert ([dead.rows for dead in chunk.dead], chunk.end) == ([rows], Position(1, 0))
    with pytest.raises(DataError, match="became unreadable while it was being read"):
        list(opened.read(cut, Position(0, 4), ["n"], 9))


def test_damage_costs_the_rest_of_its_row_group_and_no_more(tmp_path: Path) -> None:
    write(tmp_path / "a", [3, 3, 3])
    damage(tmp_path / "a", 1, 0)
    whole = task(("a", 0, 9, 9))
    for start in (0, 4):
        opened = reader(tmp_path, bad_rows="dead_letter")
        with watched() as seen:
            found = list(opened.read(whole, Position(0, start), ["n"], 9))
        assert numbers(found) == [n for n in (0, 1, 2, 6, 7, 8) if n >= start]
        (dead,) = [row for chunk in found for row in chunk.dead]
        begin = max(3, start)
        assert (dead.position, dead.rows) == ((0, begin), 6 - begin)
        assert dead.location == {"file": "a", "row_group": 1, "row": begin}
    assert seen.asked == [[1, 2], [1], [2]], "what was read is not read again"


def test_a_row_group_that_cannot_be_cut_is_lost_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "a", [3, 3, 3])
    damage(tmp_path / "a", 0, 1)  # its times
    opened = reader(tmp_path, bad_rows="dead_letter")
    found = list(opened.read(task(("a", 0, 9, 5), minutes=5), None, ["n"], 9))
    (dead,) = [row for chunk in found for row in chunk.dead]
    assert (dead.rows, dead.location["row_group"]) == (5, 0)


def test_damage_after_the_last_row_of_the_window_loses_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a", [300])
    damage(tmp_path / "a", 0, 0)  # the numbers: times can still be read
    five = task(("a", 0, 300, 5), minutes=5)
    opened = reader(tmp_path, bad_rows="dead_letter")
    for position, lost in ((None, [5]), (Position(0, 3), [2]), (Position(0, 5), [])):
        (chunk,) = opened.read(five, position, ["n"], 1000)
        assert [dead.rows for dead in chunk.dead] == lost
        assert (len(chunk.rows), chunk.end) == (0, Position(1, 0))


def test_a_file_of_many_ranges_and_bad_rows_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = pa.array([START, None] * 150, pa.timestamp("us", "UTC"))
    for name in "ab":
        pq.write_table(pa.table({"at": times, "n": range(300)}), tmp_path / name, row_group_size=1)
    looked_at = []

    def ends(metadata: pq.FileMetaData) -> Any:
        looked_at.append(metadata.num_rows)
        return group_ends(metadata)

    monkeypatch.setattr(open_files, "group_ends", ends)
    ranges = [(name, row, row + 2, 2) for name in "ab" for row in range(0, 300, 3)]
    found = list(reader(tmp_path, bad_rows="dead_letter").read(task(*ranges), None, ["n"], 50))
    dead = [row for chunk in found for row in chunk.dead]
    assert sum(chunk.batch.num_rows for chunk in found) == len(dead) == 200
    assert all(row.location["row_group"] == row.location["row"] for row in dead)
    assert looked_at == [300, 300]


@pytest.mark.parametrize("policy", ["dead_letter", "fail"])
def test_rows_that_a_footer_only_claims_are_bad(tmp_path: Path, policy: str) -> None:
    """As thrift writes it: twice the number, seven bits in a byte."""
    write(tmp_path / "a", [1000])
    content = (tmp_path / "a").read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    claimed = content[footer:].replace(b"\xd0\x0f", b"\x98\x11")
    (tmp_path / "a").write_bytes(content[:footer] + claimed)
    assert pq.read_metadata(tmp_path / "a").num_rows == 1100
    chunks = reader(tmp_path, bad_rows=policy).read(task(("a", 0, 1100, 1100)), None, ["n"], 300)
    if policy == "fail":
        told = r"a, from row 1000, .* fewer rows than its footer says"
        with pytest.raises(DataError, match=told):
            list(chunks)
        return
    found = list(chunks)
    assert numbers(found) == list(range(1000))
    [dead] = [row for chunk in found for row in chunk.dead]
    assert (dead.rows, dead.location["row"]) == (100, 1000)


@pytest.mark.guarantee(
    "a text in a Parquet file or an Iceberg table is not UTF-8",
    "red with its place, or a dead letter by `bad_rows`",
)
def test_texts_that_are_no_utf_8_are_bad_rows(tmp_path: Path) -> None:
    """Arrow reads them from Parquet as they are."""
    words = [b"a", b"\xff", "ü".encode(), None, b"b", b"\xed\xa0\x80"]
    texts = pa.array(words, pa.binary()).view(pa.string())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5, 6], pa.int32()), texts)
    times = pa.array([START] * 6)
    pq.write_table(pa.table({"at": times, "s": texts, "l": lists}), tmp_path / "a")
    columns = {"at": "timestamp", "s": "string", "l": "list<string>"}
    only = task(("a", 0, 6, 6))
    for name, kind in (("s", "string"), ("l", "list<string>")):
        opened = reader(tmp_path, columns=columns, bad_rows="dead_letter")
        [chunk] = opened.read(only, None, [name], 100)
        assert [row.location["row"] for row in chunk.dead] == [1, 5]
        reason = f"column {name!r} as {kind}: it is not UTF-8 text"
        assert {row.reason for row in chunk.dead} == {reason}
        chunk.batch.validate(full=True)
        assert chunk.batch.num_rows == 4
    with pytest.raises(DataError, match="file a, row_group 0, row 1: column 's' as string"):
        list(reader(tmp_path, columns=columns).read(only, None, ["s"], 100))


class Storage:
    def __init__(self, root: Path) -> None:
        self.root, self.opened, self.closed = root, 0, 0

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        self.opened += 1
        try:
            with (self.root / path).open("rb") as file:
                yield file
        finally:
            self.closed += 1


def _read_both(files: LastFile) -> None:
    files.open("a", "1")
    files.open("missing", "1")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for name, rows in (("a", 3), ("b", 5)):
        pq.write_table(pa.table({"n": range(rows)}), tmp_path / name)
    return Storage(tmp_path)


def test_the_next_task_finds_the_file_open(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    for _ in range(3):
        with keeper.lent() as files:
            assert files.open("a", "7|mtime_ns=1").num_rows == 3
    assert (storage.opened, storage.closed) == (1, 0)
    keeper.close()
    assert storage.closed == 1


def test_another_file_or_version_takes_its_place(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    wanted = [("a", "1"), ("b", "1"), ("b", "2"), ("a", "1")]
    for path, version in wanted:
        with keeper.lent() as files:
            files.open(path, version)
        assert storage.opened - storage.closed == 1
    assert storage.opened == len(wanted)
    keeper.close()
    assert storage.closed == len(wanted)


def test_a_file_of_no_known_version_is_open_for_one_task_alone(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    for _ in range(2):
        with keeper.lent() as files:
            assert files.open("a", "") is files.open("a", "")
    assert (storage.opened, storage.closed) == (2, 2)


def test_what_a_task_that_failed_had_open_is_closed(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    with pytest.raises(FileNotFoundError), keeper.lent() as files:
        _read_both(files)
    assert (storage.opened, storage.closed) == (2, 2)
    with keeper.lent() as files:
        files.open("a", "1")
    assert storage.opened == 3


def test_two_tasks_at_a_time_share_no_file(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    with keeper.lent() as one, keeper.lent() as other:
        first, second = one.open("a", "1"), other.open("a", "1")
        assert first.file is not second.file
    assert (storage.opened, storage.closed) == (2, 1)
    keeper.close()
    assert storage.closed == 2
