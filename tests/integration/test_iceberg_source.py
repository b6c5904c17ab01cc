"""Iceberg tables as other tools write them: deletes, evolved schemas, partitions, bad addresses."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hostile.bytes_changed import Places, changed
from support.iceberg_tables import (
    CATALOG,
    TABLE,
    append,
    delete_positions,
    opened_catalog,
    opened_table,
)
from support.parquet_files import contradict_types
from support.stages import pipeline

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.look.changes import changes_since
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.common.values.row_ids import row_ids
from forebay.errors import ConfigError, DataError, ForebayError, InfrastructureError
from forebay.home.paths import Home
from forebay.testing.source_suite import tasks_of

START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = [Interval(START + timedelta(days=n), START + timedelta(days=n + 1)) for n in range(3)]


def rows(first: int, last: int, step: timedelta = HOUR) -> pa.Table:
    """One row for each step; `id` counts from START."""
    numbers = range(first, last)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "at": pa.array([START + step * n for n in numbers], pa.timestamp("us", tz="UTC")),
            "shop": [f"shop {n % 3}" for n in numbers],
        }
    )


FIELDS: dict[str, Any] = {
    "name": "clicks",
    "kind": "iceberg",
    "options": {"catalog": CATALOG, "table": TABLE},
    "columns": {"id": "int", "at": "timestamp", "shop": "string"},
    "event_time": "at",
}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Source]]:
    """Opens a source of the table, declared as it is, but for what is given."""
    with ExitStack() as sources:
        yield lambda **more: sources.enter_context(
            closing(open_source(SourceSpec.model_validate(FIELDS | more), tmp_path))
        )


@pytest.fixture
def source(opened: Callable[..., Source]) -> Source:
    return opened()


def read(
    source: Source, spans: list[Interval], columns: tuple[str, ...] = ("id",)
) -> list[list[Any]]:
    """The rows of each span; planned rows have to equal them."""
    scan = source.scan(spans)
    found = []
    for index in range(len(spans)):
        values: list[Any] = []
        for task in tasks_of(scan, spans, index):
            chunks = list(source.open(task, None, columns, 7))
            got = [row for chunk in chunks for row in chunk.batch.to_pylist()]
            assert task.rows == len(got)
            assert all((chunk.hours >= 0).all() and (chunk.hours < 24).all() for chunk in chunks)
            values += [row["id"] if columns == ("id",) else tuple(row.values()) for row in got]
        found.append(sorted(values))
    return found


def split(ids: list[int]) -> list[list[int]]:
    """Ids of the first three days."""
    return [[n for n in ids if n // 24 == day] for day in range(3)]


def test_files_that_cross_days_are_cut_by_time(tmp_path: Path, source: Source) -> None:
    append(tmp_path, rows(0, 30))
    append(tmp_path, rows(30, 80))
    assert read(source, DAYS) == split(list(range(80)))


def test_row_ids_are_those_of_path_and_row_number(tmp_path: Path, source: Source) -> None:
    append(tmp_path, rows(0, 30))
    (file,) = (tmp_path / "lake" / "warehouse").rglob("*.parquet")
    relative = f"data/{file.name}"
    (task,) = tasks_of(source.scan(DAYS), DAYS, 1)
    ids = [int(each) for chunk in source.open(task, None, ["id"], 100) for each in chunk.row_ids]
    numbers = pa.array(range(24, 30)).to_numpy()
    assert ids == row_ids(relative, numbers).tolist()


def test_a_real_delete_is_respected(tmp_path: Path, source: Source) -> None:
    append(tmp_path, rows(0, 72))
    before = source.scan(DAYS).fingerprints
    with opened_table(tmp_path) as table:
        table.delete("id >= 30 and id < 40")
    assert read(source, DAYS) == split([n for n in range(72) if not 30 <= n < 40])
    assert source.scan(DAYS).fingerprints != before


def test_positional_deletes_are_applied_and_resumed(tmp_path: Path, source: Source) -> None:
    append(tmp_path, rows(0, 72))
    append(tmp_path, rows(72, 75))
    before = source.scan(DAYS).fingerprints
    with opened_table(tmp_path) as table:
        path = next(
            task.file.file_path
            for task in table.scan().plan_files()
            if task.file.record_count == 72
        )
        delete_positions(table, path, [0, 25, 26, 71])
    left = [n for n in range(72) if n not in {0, 25, 26, 71}]
    assert read(source, DAYS) == split(left)
    assert all(a != b for a, b in zip(before, source.scan(DAYS).fingerprints, strict=True))
    whole = [Interval(START, START + timedelta(days=3))]
    (task,) = [t for t in tasks_of(source.scan(whole), whole, 0) if t.rows == len(left)]
    chunks = list(source.open(task, None, ["id"], 7))
    assert len(chunks) > 5
    for chunk in filter(lambda each: len(each.rows), chunks):
        again = [
            value
            for each in source.open(task, chunk.position(1), ["id"], 7)
            for value in each.batch.column(0).to_pylist()
        ]
        assert again == left[left.index(chunk.batch.column(0)[0].as_py()) + 1 :]


def test_renamed_and_added_columns(tmp_path: Path, opened: Callable[..., Source]) -> None:
    from pyiceberg.types import DoubleType

    append(tmp_path, rows(0, 24))
    with opened_table(tmp_path) as table, table.update_schema() as update:
        update.rename_column("shop", "store")
        update.add_column("price", DoubleType())
    later = rows(24, 48).rename_columns(["id", "at", "store"])
    append(tmp_path, later.append_column("price", pa.array([1.5] * 24)))
    source = opened(columns={"id": "int", "at": "timestamp", "store": "string", "price": "float"})
    assert source.findings() == []
    found = read(source, DAYS, ("id", "store", "price"))
    assert found[0] == [(n, f"shop {n % 3}", None) for n in range(24)]
    assert found[1] == [(n, f"shop {n % 3}", 1.5) for n in range(24, 48)]


def test_columns_that_files_spell_otherwise(tmp_path: Path, opened: Callable[..., Source]) -> None:
    """Writers store names as Avro allows them: `a b` as `a_x20b`."""
    append(tmp_path, rows(0, 24).rename_columns(["id", "at", "a b"]))
    source = opened(columns={"id": "int", "at": "timestamp", "a b": "string"})
    assert source.findings() == []
    found = read(source, DAYS, ("id", "a b"))
    assert found == [[(n, f"shop {n % 3}") for n in range(24)], [], []]


@pytest.mark.parametrize("column", ["shop", "a b"], ids=["read", "planned"])
@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_in_the_place_of_one_is_named(
    tmp_path: Path, opened: Callable[..., Source], put: Callable[[Path], None], column: str
) -> None:
    """A pipe must not even be opened, for its footer or its rows: that would wait for ever."""
    append(tmp_path, rows(0, 24).rename_columns(["id", "at", column]))
    (file,) = (tmp_path / "lake" / "warehouse").rglob("*.parquet")
    file.unlink()
    put(file)
    source = opened(columns={"id": "int", "at": "timestamp", column: "string"})
    with pytest.raises(DataError, match="is not a file"):
        read(source, DAYS)


def test_a_plan_is_read_as_it_was_made(tmp_path: Path, opened: Callable[..., Source]) -> None:
    """Rows deleted after the plan are read: the task names its files and its snapshot."""
    append(tmp_path, rows(0, 24))
    with opened_table(tmp_path) as table:
        (planned,) = table.scan().plan_files()
        delete_positions(table, planned.file.file_path, [3])
    (task,) = tasks_of(opened().scan(DAYS), DAYS, 0)
    with opened_table(tmp_path) as table:
        delete_positions(table, planned.file.file_path, [4, 5])
    chunks = opened().open(task, None, ["id"], 100)
    ids = [value for chunk in chunks for value in chunk.batch.column(0).to_pylist()]
    assert ids == [n for n in range(24) if n != 3]


def test_a_table_partitioned_by_day(tmp_path: Path, source: Source) -> None:
    from pyiceberg.transforms import IdentityTransform

    dated = rows(0, 72).append_column(
        "day", pa.array([date(2026, 3, 1 + n // 24) for n in range(72)], pa.date32())
    )
    with opened_catalog(tmp_path) as catalog:
        catalog.create_namespace("shop")
        table = catalog.create_table(TABLE, dated.schema)
        with table.update_spec() as update:
            update.add_field("day", IdentityTransform())
        table.append(dated)
    scan = source.scan(DAYS)
    assert scan.tasks.num_rows == 3
    assert source.describe().partitions == [f"day=2026-03-0{n}" for n in (1, 2, 3)]
    assert read(source, DAYS) == split(list(range(72)))


def test_rows_without_a_time_are_dead_letters(
    tmp_path: Path, opened: Callable[..., Source]
) -> None:
    table = rows(0, 24)
    times = table["at"].to_pylist()
    times[5] = None
    append(tmp_path, table.set_column(1, "at", pa.array(times, pa.timestamp("us", tz="UTC"))))
    source = opened(bad_rows="dead_letter")
    (task,) = tasks_of(source.scan(DAYS), DAYS, 0)
    chunks = list(source.open(task, None, ["id"], 100))
    assert sum(len(chunk.rows) for chunk in chunks) == 23
    assert [row.position.row for chunk in chunks for row in chunk.dead] == [5]
    assert task.rows == 24


def test_one_scan_reads_the_manifests_once(tmp_path: Path, source: Source) -> None:
    for day in range(3):
        append(tmp_path, rows(24 * day, 24 * day + 24))
    assert source.scan(DAYS).storage_calls == source.scan(DAYS[:1]).storage_calls


def test_an_empty_table_is_an_error_unless_starts_says_when_rows_begin(
    tmp_path: Path, opened: Callable[..., Source]
) -> None:
    with opened_catalog(tmp_path) as catalog:
        catalog.create_namespace("shop")
        catalog.create_table(TABLE, rows(0, 1).schema)
    assert "no snapshot" in opened().describe().empty_reason
    with pytest.raises(DataError, match="no snapshot"):
        opened().scan(DAYS)
    assert opened(starts="2026-03-01").scan(DAYS).tasks.num_rows == 0


def test_wrong_addresses_say_what_is_there(tmp_path: Path, opened: Callable[..., Source]) -> None:
    nowhere = opened()
    assert "no catalog file" in nowhere.describe().empty_reason
    assert nowhere.findings()[0].path == ("options", "table")
    with pytest.raises(DataError, match="no catalog file"):
        nowhere.scan(DAYS)
    assert not (tmp_path / "lake").exists(), "a reader creates nothing"
    append(tmp_path, rows(0, 3))
    misspelt = opened(options={"catalog": CATALOG, "table": "shop.click"})
    assert "did you mean 'shop.clicks'" in misspelt.findings()[0].message
    other = opened(options={"catalog": {**CATALOG, "name": "x"}, "table": TABLE})
    assert "options.catalog.name" in other.findings()[0].message
    with pytest.raises(ConfigError, match=r"options\.catalog"):
        opened(options={"catalog": {"type": "no"}, "table": TABLE}).scan(DAYS)


@pytest.mark.parametrize("pattern", ["snap-*.avro", "*-m0.avro"])
@pytest.mark.parametrize("size", [0, 300, 0.5])
def test_manifests_that_are_cut_are_named(
    tmp_path: Path, source: Source, pattern: str, size: float
) -> None:
    append(tmp_path, rows(0, 30))
    (path,) = (tmp_path / "lake").rglob(pattern)
    content = path.read_bytes()
    path.write_bytes(content[: int(size * len(content)) if size < 1 else int(size)])
    for ask in (source.describe, lambda: source.scan(DAYS)):
        with pytest.raises(DataError, match=rf"source 'clicks': {TABLE} cannot be planned: \S"):
            ask()


def test_a_manifest_that_is_gone_is_named(tmp_path: Path, source: Source) -> None:
    append(tmp_path, rows(0, 30))
    (path,) = (tmp_path / "lake").rglob("*-m0.avro")
    path.unlink()
    with pytest.raises(InfrastructureError, match=rf"source 'clicks': {TABLE}: .*m0\.avro"):
        source.scan(DAYS)


@pytest.mark.usefixtures("footer_children")
@pytest.mark.parametrize("policy", ["fail", "dead_letter"])
def test_a_footer_that_kills_its_reader_is_named(
    tmp_path: Path, opened: Callable[..., Source], policy: str
) -> None:
    append(tmp_path, rows(0, 20))
    append(tmp_path, rows(20, 30))  # of two days, so that planning opens it
    files = (tmp_path / "lake/warehouse").rglob("*.parquet")
    (second,) = [path for path in files if 20 in pq.read_table(path).column("id").to_pylist()]
    contradict_types(second, "at")
    hostile = opened(bad_rows=policy)
    if policy == "fail":
        with pytest.raises(DataError, match=f"{second.name} cannot be read: .*SIGABRT"):
            hostile.scan(DAYS)
    else:
        scan = hostile.scan(DAYS)
        planned = [sum(task.rows or 0 for task in tasks_of(scan, DAYS, n)) for n in range(3)]
        assert planned == [20 + 1, 1, 1]


@pytest.mark.parametrize("seed", range(20))
def test_a_manifest_with_faults_is_read_or_refused(
    tmp_path: Path, source: Source, seed: int
) -> None:
    append(tmp_path, rows(0, 20))
    manifests = sorted((tmp_path / "lake/warehouse").rglob("*.avro"))
    path = manifests[seed % len(manifests)]
    content = path.read_bytes()
    size = len(content)
    places = Places(range(0, size, 8), range(0, size, 4), range(size))
    path.write_bytes(changed(content, places, random.Random(seed)))
    with suppress(ForebayError):
        source.scan(DAYS)
    path.write_bytes(content[: size // 2])
    with pytest.raises(DataError, match=r"shop\.clicks cannot be planned: "):
        source.scan(DAYS)


def compact(place: Path, keep: int | None = None) -> None:
    """Write all rows to one new file, in snapshots that replace files."""
    with opened_table(place) as table:
        known = {each.snapshot_id for each in table.snapshots()}
        table.overwrite(table.scan().to_arrow().slice(0, keep))
        metadata = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(metadata.read_text())
    for snapshot in document["snapshots"]:
        if snapshot["snapshot-id"] not in known:
            snapshot["summary"]["operation"] = "replace"
    metadata.write_text(json.dumps(document))


@pytest.fixture
def changes(tmp_path: Path) -> Callable[[], dict[str, list[str]]]:
    """What has changed since two days were planned, of five and seven rows, and of three."""
    for first, last in ((0, 5), (5, 12), (24, 27)):
        append(tmp_path, rows(first, last))
    spec, sources = pipeline(("clicks",)), {"clicks": SourceSpec.model_validate(FIELDS)}
    ledger, now = Ledger(Home(tmp_path / "home"), "ads"), datetime(2026, 4, 1, tzinfo=UTC)
    windows = spec.dataset.grid.between("2026-03-01", "2026-03-02")
    report = plan_windows(
        tmp_path, spec, sources, ledger, windows, warm_start=None, clock=lambda: now
    )
    return lambda: changes_since(tmp_path, spec, sources, ledger, report.plans)


def test_a_compaction_changes_no_data(
    tmp_path: Path, changes: Callable[[], dict[str, list[str]]]
) -> None:
    assert changes() == {}
    compact(tmp_path)
    assert changes() == {}
    append(tmp_path, rows(27, 28))
    assert list(changes()) == ["2026-03-02"]


def test_rows_that_a_rewrite_loses_are_named(
    tmp_path: Path, changes: Callable[[], dict[str, list[str]]]
) -> None:
    compact(tmp_path, keep=6)
    assert any("rows now" in text for texts in changes().values() for text in texts)
