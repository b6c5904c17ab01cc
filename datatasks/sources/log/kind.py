"""Kind `log` as declarations see it."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from pydantic import Field, field_validator

from forebay.config.base import Duration, Spec
from forebay.config.registry import SourceKind
from forebay.datatasks.sources.common.option_types import Text
from forebay.datatasks.sources.common.patterns import has_magic


class LogKind(SourceKind):
    """An append-only log directory."""

    name: ClassVar[str] = "log"
    bounded: ClassVar[bool] = False
    source: ClassVar[str] = "forebay.datatasks.sources.log.source:LogSource"

    class Options(Spec):
        """An append-only log directory: a folder for each partition, a file for each segment."""

        path: Text = Field(description="Folder of the log, relative to the project")
        close_delay: Duration = Field(
            default=timedelta(minutes=1),
            description="How long after a window's end its last records may still arrive",
        )
        timestamp_jump_max: Duration = Field(
            default=timedelta(hours=1),
            description="How far ahead of the segments around it a segment's time may be",
        )

        @field_validator("path")
        @classmethod
        def _folder(cls, value: str) -> str:
            if has_magic(value) or "://" in value:
                raise ValueError("a log is one folder of a mounted file system, without * or ?")
            return value
