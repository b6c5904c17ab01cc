"""Kind `parquet`: files below a folder, cut by the time in their paths or by a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.row_groups.folder import FolderSource
from forebay.datatasks.sources.common.row_groups.planner import Footer
from forebay.datatasks.sources.parquet.footers import RowGroups, read_footers, read_schemas
from forebay.datatasks.sources.parquet.kind import ParquetKind
from forebay.datatasks.sources.parquet.open_files import FileKeeper
from forebay.datatasks.sources.parquet.plan import ParquetPlanner
from forebay.datatasks.sources.parquet.read import ParquetReader
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit


class ParquetSource(ParquetKind, FolderSource):
    """Parquet files below one folder."""

    options: ParquetKind.Options

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        self._keeper = FileKeeper(self._files.opened)
        self._row_groups = RowGroups(self._files.opened)

    def read_footers(self, paths: Sequence[str]) -> list[Footer | str]:
        return read_footers(paths, self._files.opened, self._files.full, self.spec.event_time)

    def read_schemas(self, paths: Sequence[str]) -> list[pa.Schema | str]:
        return read_schemas(paths, self._files.opened, self._files.full)

    def planner(self) -> ParquetPlanner:
        spec, files = self.spec, self._files
        return ParquetPlanner(files.opened, spec.event_time, spec.bad_rows, files.full)

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        reader = ParquetReader(self.spec, self._keeper, self._planned_file, self._bounds)
        return reader.read(task, position, columns, chunk_rows)

    def close(self) -> None:
        self._keeper.close()
        super().close()

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        return self._row_groups.units(task, position)

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        return self._row_groups.location(task.ranges[position.part].path, position.row)
