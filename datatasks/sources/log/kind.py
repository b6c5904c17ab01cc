"""Kind `log` as declarations see it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from forebay.config.specs.registry import SourceKind
from forebay.datatasks.sources.common.contract.option_types import StreamOptions, Text
from forebay.datatasks.sources.common.files.patterns import has_magic


class LogKind(SourceKind):
    """An append-only log directory."""

    name: ClassVar[str] = "log"
    bounded: ClassVar[bool] = False
    source: ClassVar[str] = "forebay.datatasks.sources.log.source:LogSource"

    class Options(StreamOptions):
        """An append-only log directory: a folder for each partition, a file for each segment."""

        path: Text = Field(description="Folder of the log, relative to the project")
        moved: Text | None = Field(
            default=None,
            description="The `path` before the log was moved: windows go on where they ended, if "
            "the last planned segments are in the new place as they were",
        )

        @field_validator("path", "moved")
        @classmethod
        def _folder(cls, value: str | None) -> str | None:
            if value is not None and (has_magic(value) or "://" in value):
                raise ValueError("a log is one folder of a mounted file system, without * or ?")
            return value
