"""Kind `iceberg`: one table, cut into windows by its event-time column."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import (
    Describes,
    Description,
    Finding,
    Readiness,
    Scan,
)
from forebay.datatasks.sources.common.files.bundles import RowRanges, to_tasks
from forebay.datatasks.sources.common.files.markers import MarkerSource
from forebay.datatasks.sources.common.files.versions import PlannedFile, version_text
from forebay.datatasks.sources.common.row_groups.folder import with_footers
from forebay.datatasks.sources.common.row_groups.planner import Candidates, Footer
from forebay.datatasks.sources.common.values.casting import column_findings, column_problem
from forebay.datatasks.sources.common.values.times import Spans
from forebay.datatasks.sources.iceberg.files import (
    DataFile,
    agrees,
    data_files,
    event_time_filters,
    footers,
    plain_files,
)
from forebay.datatasks.sources.iceberg.kind import IcebergKind
from forebay.datatasks.sources.iceberg.merged import MergedReader, merged_ranges
from forebay.datatasks.sources.iceberg.table import IcebergTable, NoTableError, reading_metadata
from forebay.datatasks.sources.parquet.footers import RowGroups
from forebay.datatasks.sources.parquet.open_files import FileKeeper
from forebay.datatasks.sources.parquet.plan import ParquetPlanner
from forebay.datatasks.sources.parquet.read import ParquetReader
from forebay.datatasks.task_table import TASK_SCHEMA
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit
from forebay.errors import DataError
from forebay.system.instants import shown_instant

_PARTITIONS_SHOWN = 1000
_MERGED = "snapshot="


class IcebergSource(IcebergKind, MarkerSource, Describes):
    """An Iceberg table. A row's identity is its data file and its row number in it.

    Tasks whose files pyiceberg has to read carry `snapshot=ID` as their partition, so that they
    are read as they were planned.
    """

    options: IcebergKind.Options

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        self.table = IcebergTable(self.options.catalog, self.options.table, root)
        self._event_time = str(spec.event_time)
        self._scan_tasks: dict[int, dict[str, Any]] = {}
        self._row_groups = RowGroups(self.table.opened)
        self._keeper = FileKeeper(self.table.opened)
        self._lock = threading.Lock()  # runner threads open tasks side by side

    def describe(self) -> Description:
        try:
            table = self.table.load()
        except NoTableError as error:
            return Description({}, empty_reason=str(error))
        schema = _arrow_schema(table)
        columns = {field.name: str(field.type) for field in schema}
        if table.current_snapshot() is None:
            return Description(columns, empty_reason=f"{self.table.identifier} has no snapshot")
        if self._event_time not in columns:
            return Description(columns)
        from pyiceberg.expressions import AlwaysTrue

        files = self._planned(table, [AlwaysTrue()])
        newest = max((file.high for file in files if file.high is not None), default=None)
        return Description(
            columns,
            _partitions(table, files)[:_PARTITIONS_SHOWN],
            shown_instant(newest) if newest is not None else None,
            "" if files else f"{self.table.identifier} has no data files",
        )

    def findings(self) -> list[Finding]:
        try:
            schema = _arrow_schema(self.table.load())
        except NoTableError as error:
            return [Finding(("options", "table"), "nothing-matched", str(error))]
        return list(column_findings(schema, self.spec.columns, self.table.identifier))

    def marked(self, spans: Sequence[Interval], marker: str) -> list[Readiness]:
        """One look for the marker in the table's folder, which speaks of every span."""
        self._loaded()
        there = self.table.exists(marker)
        reason = "" if there else f"there is no {self.table.full(marker)}"
        return [Readiness(ready=there, reason=reason) for _ in spans]

    def scan(self, spans: Sequence[Interval]) -> Scan:
        before = self.table.calls
        table = self._loaded()
        snapshot = table.current_snapshot()
        if snapshot is None and self.spec.starts is None:
            raise DataError(
                f"source {self.spec.name!r}: table {self.table.identifier} has no snapshot: write "
                "to it, or declare `starts` (when its rows begin) if it may be empty"
            )
        if snapshot is None or not spans:
            texts = [_digest([]) for _ in spans]
            return Scan(TASK_SCHEMA.empty_table(), texts, self.table.calls - before)
        self._check(table)
        bounds = Spans(spans)
        row_filters = event_time_filters(table, self._event_time, bounds)
        with reading_metadata(self._place):
            manifests = len(snapshot.manifests(table.io))
        files = self._planned(table, row_filters)
        known = self._plain_footers(table, files, bounds)
        merged = {index: file for index, file in enumerate(files) if index not in known}
        parts = self._plain_ranges(files, known, bounds)
        rest = merged_ranges(table, merged, self._event_time, bounds, self.spec.bad_rows)
        ranges = RowRanges.concatenate([parts, rest])
        paths = pa.array([file.path for file in files], pa.string())
        way = f"{_MERGED}{snapshot.snapshot_id}"
        ways = [way if index in merged else "" for index in range(len(files))]
        schema_id = table.schema().schema_id
        return Scan(
            to_tasks(ranges, paths, pa.array(ways, pa.string()), versions=_versions(files, known)),
            [
                _digest(_held(files, ranges, span, merged.keys(), schema_id))
                for span in range(len(spans))
            ],
            self.table.calls - before + 1 + manifests,
        )

    def rewritten(self, paths: Collection[str]) -> bool:
        """A compaction adds its files in a snapshot that replaces."""
        from pyiceberg.table.snapshots import Operation

        table = self._loaded(fresh=False)
        replacing = {
            each.snapshot_id
            for each in table.snapshots()
            if each.summary is not None and each.summary.operation is Operation.REPLACE
        }
        with reading_metadata(self._place):
            entries = table.inspect.entries()
        added = zip(
            entries["data_file"].to_pylist(), entries["snapshot_id"].to_pylist(), strict=True
        )
        by_path = {self.table.relative(file["file_path"]): snapshot for file, snapshot in added}
        return all(by_path.get(path) in replacing for path in paths)

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        with self._lock:
            table = self._loaded(fresh=False)
            scan_tasks = {}
            if task.partition.startswith(_MERGED):
                snapshot_id = int(task.partition.removeprefix(_MERGED))
                if table.snapshot_by_id(snapshot_id) is None:  # newer than what was loaded
                    table = self._loaded()
                scan_tasks = self._tasks_of(table, snapshot_id)
        if scan_tasks:
            merged = MergedReader(self.spec, table, scan_tasks, self._planned_file)
            return merged.read(task, position, columns, chunk_rows)
        reader = ParquetReader(
            self.spec,
            self._keeper,
            lambda row_range, _window: self._planned_file(row_range.path, row_range.version),
        )
        return reader.read(task, position, columns, chunk_rows)

    def _planned_file(self, path: str, version: str) -> PlannedFile:
        way_out = "files of a table never change: put the old one back, or commit the new one to it"
        place = self.table.full(path)
        return PlannedFile(place, version, lambda: self.table.version(path), way_out)

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        if task.partition.startswith(_MERGED):
            return super().units(task, position)
        return self._row_groups.units(task, position)

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        """Rows that pyiceberg merged are in no row group of their own."""
        if task.partition.startswith(_MERGED):
            return super().location(task, position)
        with self._lock:
            return self._row_groups.location(task.ranges[position.part].path, position.row)

    def close(self) -> None:
        self._keeper.close()
        self.table.close()

    def _loaded(self, *, fresh: bool = True) -> Any:  # noqa: ANN401
        try:
            return self.table.load(fresh=fresh)
        except NoTableError as error:
            raise DataError(f"source {self.spec.name!r}: {error}") from error

    def _needed(self) -> list[str]:
        return list(dict.fromkeys([*self.spec.columns, self._event_time]))

    def _check(self, table: Any) -> None:  # noqa: ANN401
        schema = _arrow_schema(table)
        for name in self._needed():
            declared = self.spec.columns.get(name, ColumnType.TIMESTAMP)
            problem = column_problem(schema, name, declared)
            if problem:
                raise DataError(f"source {self.spec.name!r}, {self.table.identifier}: {problem}")

    def _planned(self, table: Any, row_filters: list[Any]) -> list[DataFile]:  # noqa: ANN401
        with reading_metadata(self._place):  # equality deletes are not read, for one
            return data_files(table, row_filters, self._event_time, self.table.relative)

    @property
    def _place(self) -> str:
        return f"source {self.spec.name!r}: {self.table.identifier}"

    def _plain_footers(
        self,
        table: Any,  # noqa: ANN401
        files: list[DataFile],
        spans: Spans,
    ) -> dict[int, Footer | str]:
        opened, place = self.table.opened, self.table.full
        plain = plain_files(table, self._needed(), files, opened, place)
        chosen = [files[index] for index in plain]
        found = footers(chosen, spans, self._event_time, opened, place)
        return {
            index: footer
            for index, footer in zip(plain, found, strict=True)
            if agrees(files[index], footer)
        }

    def _plain_ranges(
        self, files: list[DataFile], known: Mapping[int, Footer | str], spans: Spans
    ) -> RowRanges:
        opened, place = self.table.opened, self.table.full
        planner = ParquetPlanner(opened, self._event_time, self.spec.bad_rows, place)
        plain = list(known)
        if not plain:
            return RowRanges.of([])
        paths = pa.array([files[index].path for index in plain], pa.string())
        ranges = planner.ranges(Candidates(paths, list(known.values()), None, None), spans)
        return replace(ranges, file=np.array(plain, np.int64)[ranges.file])

    def _tasks_of(self, table: Any, snapshot_id: int) -> dict[str, Any]:  # noqa: ANN401
        """Pyiceberg's tasks of one snapshot by relative path; planned once per snapshot."""
        if snapshot_id not in self._scan_tasks:
            if table.snapshot_by_id(snapshot_id) is None:
                raise DataError(
                    f"source {self.spec.name!r}: snapshot {snapshot_id} of {self.table.identifier} "
                    "has expired since the window was planned: forget the window (`forebay "
                    "forget`) and run it again"
                )
            with reading_metadata(self._place):
                planned = table.scan(snapshot_id=snapshot_id).plan_files()
                self._scan_tasks[snapshot_id] = {
                    self.table.relative(task.file.file_path): task for task in planned
                }
        return self._scan_tasks[snapshot_id]


def _arrow_schema(table: Any) -> pa.Schema:  # noqa: ANN401
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(table.schema(), include_field_ids=False)


def _partitions(table: Any, files: list[DataFile]) -> list[str]:  # noqa: ANN401
    specs, schema = table.specs(), table.schema()
    names = {
        specs[file.task.file.spec_id].partition_to_path(file.task.file.partition, schema)
        for file in files
    }
    return sorted(names - {""})


def _versions(files: list[DataFile], known: Mapping[int, Footer | str]) -> pa.Array:
    """Sizes by the manifest, and digests of the footers that planning had to read."""
    sizes = pa.array([version_text(file.size_bytes) for file in files], pa.string())
    return with_footers(sizes, [known.get(index, "") for index in range(len(files))])


def _held(
    files: list[DataFile], ranges: RowRanges, span: int, merged: Collection[int], schema_id: int
) -> list[str]:
    """The files of a span, and for merged ones what else decides on their rows."""
    indices = np.unique(ranges.file[ranges.span == span]).tolist()
    return [
        f"{files[index].path}|{files[index].size_bytes}"
        + (f"|{files[index].version}|{schema_id}" if index in merged else "")
        for index in indices
    ]


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
