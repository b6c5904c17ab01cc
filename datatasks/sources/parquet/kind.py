"""Kind `parquet` as declarations see it."""

from __future__ import annotations

from typing import ClassVar

from forebay.datatasks.sources.common.files.folder_kind import FolderKind, FolderOptions


class ParquetKind(FolderKind):
    """Parquet files."""

    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    source: ClassVar[str] = "forebay.datatasks.sources.parquet.source:ParquetSource"

    class Options(FolderOptions):
        """Parquet files in a folder.

        A folder means all `*.parquet` files in it and in its subfolders, except files and folders
        whose names start with `.` or `_` (but `_date=…` is read).
        """
