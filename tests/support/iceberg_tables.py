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
    """The catalog of CATALOG, as another program would open it."""
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
def opened_table(place: Path, table: str = TABLE) -> Iterator[Any]:
    """The table, to be changed by a test."""
    with opened_catalog(place) as catalog:
        yield catalog.load_table(table)


def delete_positions(table: Any, data_path: str, positions: list[int]) -> None:
    """Commit a positional delete file, as Spark's merge-on-read writes them.

    pyiceberg itself only rewrites data files, so the delete manifest is put together here.
    """
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
    from pyiceberg.typedef import Record

    class DeletesWriter(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    base = table.location()
    before = table.current_snapshot()
    new_id, sequence = before.snapshot_id + 1, table.metadata.last_sequence_number + 1
    deletes = pa.table(
        {"file_path": [data_path] * len(positions), "pos": pa.array(positions, pa.int64())}
    )
    delete_path = f"{base}/data/deletes-{new_id}.parquet"
    with table.io.new_output(delete_path).create() as sink:
        pq.write_table(deletes, sink)
    size = len(table.io.new_input(delete_path))
    delete_file = DataFile.from_args(
        _table_format_version=2,
        content=DataFileContent.POSITION_DELETES,
        file_path=delete_path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=size,
    )
    delete_file.spec_id = table.spec().spec_id
    output = table.io.new_output(f"{base}/metadata/deletes-{new_id}.avro")
    with DeletesWriter(table.spec(), table.schema(), output, new_id, "null") as writer:
        writer.add_entry(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=new_id, data_file=delete_file
            )
        )
    listing = f"{base}/metadata/snap-{new_id}.avro"
    with write_manifest_list(
        2, table.io.new_output(listing), new_id, before.snapshot_id, sequence, "null"
    ) as manifests:
        manifests.add_manifests([writer.to_manifest_file(), *before.manifests(table.io)])
    snapshot = Snapshot(
        snapshot_id=new_id,
        parent_snapshot_id=before.snapshot_id,
        sequence_number=sequence,
        timestamp_ms=before.timestamp_ms + 1000,
        manifest_list=listing,
        summary=Summary(Operation.DELETE),
        schema_id=table.schema().schema_id,
    )
    branch = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=new_id)
    table.catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), branch))
