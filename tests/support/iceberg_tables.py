"""A SQLite catalog below a test's folder, and tables in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TABLE = "shop.clicks"
# Relative, as a project would write them.
CATALOG = {"type": "sql", "uri": "sqlite:///lake/catalog.db", "warehouse": "lake/warehouse"}


@contextmanager
def opened_catalog(place: Path) -> Iterator[Any]:
    from pyiceberg.catalog.sql import SqlCatalog

    (place / "lake").mkdir(exist_ok=True)
    catalog = SqlCatalog(
        "default",
        uri=f"sqlite:///{place}/lake/catalog.db",
        warehouse=f"file://{place}/lake/warehouse",
    )
    try:
        yield catalog
    finally:
        catalog.close()


def append(place: Path, rows: pa.Table, table: str = TABLE) -> None:
    """One append, which is one data file; creates the table when it is not there."""
    with opened_catalog(place) as catalog:
        if not catalog.namespace_exists(table.split(".", maxsplit=1)[0]):
            catalog.create_namespace(table.split(".", maxsplit=1)[0])
        if not catalog.table_exists(table):
            catalog.create_table(table, rows.schema)
        catalog.load_table(table).append(rows)


@contextmanager
def opened_table(place: Path) -> Iterator[Any]:
    with opened_catalog(place) as catalog:
        yield catalog.load_table(TABLE)


def add_file(table: Any, path: str, rows: pa.Table, **more: Any) -> None:
    """One data file as some other writer says it: its path as it is spelled, bounds, a partition.

    more: what is said of it, by the names of pyiceberg's DataFile.
    """
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    local = Path("/" + path.removeprefix("file:").lstrip("/"))
    local.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, local, row_group_size=more.pop("row_group_size", None))
    said: dict[str, Any] = {
        "content": DataFileContent.DATA,
        "file_path": path,
        "file_format": FileFormat.PARQUET,
        "partition": Record(),
        "record_count": rows.num_rows,
        "file_size_in_bytes": local.stat().st_size,
        **dict.fromkeys(("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")),
        **dict.fromkeys(("lower_bounds", "upper_bounds", "split_offsets", "sort_order_id")),
    }
    file = DataFile.from_args(**said | more)
    file.spec_id = table.spec().spec_id
    with table.transaction() as change, change.update_snapshot().fast_append() as append_files:
        append_files.append_data_file(file)


def delete_positions(table: Any, data_path: str, positions: list[int], place: str = "") -> None:
    """Commit a positional delete file, as Spark's merge-on-read writes them.

    pyiceberg itself only rewrites data files, so the delete manifest is put together here.
    """
    snapshot_id = table.current_snapshot().snapshot_id + 1
    place = place or f"{table.location()}/data/deletes-{snapshot_id}.parquet"
    deletes = pa.table(
        {"file_path": [data_path] * len(positions), "pos": pa.array(positions, pa.int64())}
    )
    with table.io.new_output(place).create() as sink:
        pq.write_table(deletes, sink)
    _commit_deletes(table, snapshot_id, _delete_manifest(table, snapshot_id, place, len(positions)))


def _delete_manifest(table: Any, snapshot_id: int, place: str, count: int) -> Any:
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
    )
    from pyiceberg.typedef import Record

    class DeletesWriter(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    delete_file = DataFile.from_args(
        _table_format_version=2,
        content=DataFileContent.POSITION_DELETES,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=count,
        file_size_in_bytes=len(table.io.new_input(place)),
    )
    delete_file.spec_id = table.spec().spec_id
    output = table.io.new_output(f"{table.location()}/metadata/deletes-{snapshot_id}.avro")
    with DeletesWriter(table.spec(), table.schema(), output, snapshot_id, "null") as writer:
        added = ManifestEntryStatus.ADDED
        writer.add_entry(
            ManifestEntry.from_args(status=added, snapshot_id=snapshot_id, data_file=delete_file)
        )
    return writer.to_manifest_file()


def _commit_deletes(table: Any, snapshot_id: int, manifest: Any) -> None:
    from pyiceberg.manifest import write_manifest_list
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

    before, sequence = table.current_snapshot(), table.metadata.last_sequence_number + 1
    listing = f"{table.location()}/metadata/snap-{snapshot_id}.avro"
    output = table.io.new_output(listing)
    with write_manifest_list(
        2, output, snapshot_id, before.snapshot_id, sequence, "null"
    ) as manifests:
        manifests.add_manifests([manifest, *before.manifests(table.io)])
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=before.snapshot_id,
        sequence_number=sequence,
        timestamp_ms=before.timestamp_ms + 1000,
        manifest_list=listing,
        summary=Summary(Operation.DELETE),
        schema_id=table.schema().schema_id,
    )
    branch = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id)
    table.catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), branch))
