"""Kinds whose rows lie in files below one folder, as declarations see them."""

from __future__ import annotations

import re
from typing import ClassVar, cast

from pydantic import Field, field_validator

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind
from forebay.datatasks.sources.common.contract.option_types import StorageOptions, Text
from forebay.datatasks.sources.common.files.patterns import (
    glob_regex,
    require_regex,
    split_root,
    time_pattern,
)

# Where s3fs takes two slashes for one: it would list other keys than are named.
_EMPTY_FOLDER = re.compile(r"^s3[an]?://(?:[^/]*//|.*//(?:$|[^/]*[*?\[]))")


class FolderOptions(Spec):
    """Files in a folder.

    A folder means all files of the kind in it and in its subfolders, except files and folders whose
    names start with `.` or `_` (but `_date=…` is read).
    """

    path: Text = Field(
        description="Folder, file or glob (*, ?, [], **): relative to the project, or a URL"
    )
    window_path: Text | None = Field(
        default=None,
        description="Pattern of the paths in the folder, with the rows' time in UTC, such as "
        "date={date}/*.parquet: rows are then cut by path, otherwise by event_time",
    )
    storage: StorageOptions = Field(
        default=StorageOptions(),
        description="Options of the URL's file system (fsspec), by its own names",
    )

    @field_validator("window_path")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is not None:
            time_pattern(value)
        return value

    @field_validator("path")
    @classmethod
    def _no_placeholder(cls, value: str) -> str:
        if "{" in value:
            raise ValueError("placeholders such as {date} belong in window_path, below the folder")
        if _EMPTY_FOLDER.search(value):
            raise ValueError(
                "in a bucket // is part of the keys: objects whose keys have it are read when "
                "`path` names the folder before it; a folder is written without it"
            )
        require_regex(value, glob_regex(split_root(value)[1]))
        return value


class FolderKind(SourceKind):
    """A kind whose options are `FolderOptions`, or more.

    suffixes: ends of the names of files that a folder stands for.
    """

    bounded: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]]

    @classmethod
    def needs_event_time(cls, options: Spec) -> bool:
        """Paths may say the time instead."""
        return cast("FolderOptions", options).window_path is None
