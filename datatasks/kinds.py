"""The kinds that come with Forebay: their options in YAML and how to open them.

Light on purpose: reading a declaration imports neither Arrow nor a storage client.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, StringConstraints, field_validator

from forebay.config.base import Spec
from forebay.config.registry import SourceKind
from forebay.config.sources import SourceSpec
from forebay.datatasks.sources.common.patterns import has_magic, time_pattern

Text = Annotated[str, StringConstraints(min_length=1)]
Scalar = bool | int | float | str


class MemoryOptions(Spec):
    """Rows in this process, for tests."""

    table: Text = Field(description="Key in forebay.datatasks.sources.memory.source.MEMORY")


class ParquetOptions(Spec):
    """Parquet files below a folder.

    Files and folders whose name starts with `.` or `_` are left alone (`_date=…` is not), and a
    folder stands for all `*.parquet` below it.
    """

    path: Text = Field(
        description="Folder, file or glob (*, ?, [], **): relative to the project, or an URL"
    )
    window_path: Text | None = Field(
        default=None,
        description="Pattern below the folder that says the rows' time in UTC, such as "
        "date={date}/*.parquet: rows are then cut by path, otherwise by event_time",
    )
    storage: dict[str, Scalar] = Field(
        default_factory=dict, description="Further options of the URL's file system (fsspec)"
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
        return value


class LogOptions(Spec):
    """An append-only log directory: one folder for each partition, one file for each segment."""

    path: Text = Field(description="Folder of the log, relative to the project")

    @field_validator("path")
    @classmethod
    def _folder(cls, value: str) -> str:
        if has_magic(value) or "://" in value:
            raise ValueError("a log is one folder of a mounted file system, without * or ?")
        return value


class IcebergOptions(Spec):
    """One Iceberg table."""

    catalog: dict[str, Scalar] = Field(
        min_length=1, description="Properties of the catalog as pyiceberg names them (type, uri, …)"
    )
    table: Text = Field(description="Identifier in the catalog, such as shop.clicks")


class KafkaOptions(Spec):
    """One Kafka topic. Rows are cut by the timestamp of their record."""

    bootstrap: Text = Field(description="Brokers: host:port, several separated by commas")
    topic: Text
    format: Literal["arrow-ipc", "json"] = Field(
        default="arrow-ipc", description="arrow-ipc: a micro-batch in each message; json: one row"
    )
    client: dict[str, Scalar] = Field(
        default_factory=dict, description="Further options of the Kafka client (security, timeouts)"
    )


class MemoryKind(SourceKind):
    """Tables of this process."""

    name: ClassVar[str] = "memory"
    bounded: ClassVar[bool] = True
    options: ClassVar[type[Spec]] = MemoryOptions

    @classmethod
    def open(cls, spec: SourceSpec, options: Spec, root: Path) -> object:
        """A `MemorySource`."""
        from forebay.datatasks.sources.memory.source import MemorySource

        return MemorySource(spec, options, root)


class ParquetKind(SourceKind):
    """Parquet files."""

    name: ClassVar[str] = "parquet"
    bounded: ClassVar[bool] = True
    options: ClassVar[type[Spec]] = ParquetOptions

    @classmethod
    def open(cls, spec: SourceSpec, options: Spec, root: Path) -> object:
        """A `ParquetSource`."""
        from forebay.datatasks.sources.parquet.source import ParquetSource

        return ParquetSource(spec, options, root)

    @classmethod
    def needs_event_time(cls, options: Spec) -> bool:
        """Paths may say the time instead."""
        return cast("ParquetOptions", options).window_path is None


class LogKind(SourceKind):
    """An append-only log directory."""

    name: ClassVar[str] = "log"
    bounded: ClassVar[bool] = False
    options: ClassVar[type[Spec]] = LogOptions

    @classmethod
    def open(cls, spec: SourceSpec, options: Spec, root: Path) -> object:
        """A `LogSource`."""
        from forebay.datatasks.sources.log.source import LogSource

        return LogSource(spec, options, root)


class IcebergKind(SourceKind):
    """An Iceberg table."""

    name: ClassVar[str] = "iceberg"
    bounded: ClassVar[bool] = True
    options: ClassVar[type[Spec]] = IcebergOptions

    @classmethod
    def open(cls, spec: SourceSpec, options: Spec, root: Path) -> object:
        """An `IcebergSource`."""
        from forebay.datatasks.sources.iceberg.source import IcebergSource

        return IcebergSource(spec, options, root)


class KafkaKind(SourceKind):
    """A Kafka topic."""

    name: ClassVar[str] = "kafka"
    bounded: ClassVar[bool] = False
    options: ClassVar[type[Spec]] = KafkaOptions

    @classmethod
    def open(cls, spec: SourceSpec, options: Spec, root: Path) -> object:
        """A `KafkaSource`."""
        from forebay.datatasks.sources.kafka.source import KafkaSource

        return KafkaSource(spec, options, root)
