"""SourceSpec: where rows are stored, what they contain, and what to do if they are late or bad."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from forebay.config.specs.base import Duration, Instant, Spec
from forebay.config.specs.windows import Interval
from forebay.system.names import shown

__all__ = ["ColumnType", "ReadySpec", "SourceSpec"]

# The reasons why a source has no rows in a span before its `starts`, or after its `ends`.
BEFORE_START = "before start"
AFTER_END = "after end"

DEAD_LETTER_BYTES_MAX = 16 << 20

ColumnName = Annotated[str, StringConstraints(min_length=1)]


class ColumnType(StrEnum):
    """Declared column types. Lists hold values of one type; timestamps are instants in UTC."""

    STRING = "string"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TIMESTAMP = "timestamp"
    LIST_STRING = "list<string>"
    LIST_INT = "list<int>"
    LIST_FLOAT = "list<float>"


LIST_ITEMS: Mapping[ColumnType, ColumnType] = {
    ColumnType.LIST_STRING: ColumnType.STRING,
    ColumnType.LIST_INT: ColumnType.INT,
    ColumnType.LIST_FLOAT: ColumnType.FLOAT,
}


class ReadySpec(Spec):
    """When a window of this source is complete, and what happens if it stays incomplete.

    `marker` is the name of a file that must exist beside the window's files; `wait` bounds the
    waiting; `late` says what happens then: `fail` (red), or `skip` (0 rows, recorded with the
    reason). A window without rows is complete, unless the source has had none for longer than
    `silent_max`: then `late` applies to it too.
    """

    marker: str | None = Field(
        default=None,
        description="Name of a file, such as _SUCCESS, that must exist beside a window's files "
        "before the window is read. Without it, a window is ready as soon as it has ended",
    )
    wait: Duration = Field(default=timedelta(0), description="How long a run waits for this source")
    late: Literal["fail", "skip"] = Field(
        default="fail",
        description="What happens when the source is still not ready after `wait`: `fail` the "
        "run, or `skip` the source for this window (0 rows, recorded with the reason)",
    )
    silent_max: Duration = Field(
        default=timedelta(hours=24),
        description="How long a source may have no rows before it is late",
    )

    @field_validator("marker")
    @classmethod
    def _file_name(cls, value: str | None) -> str | None:
        if value is not None and ("/" in value or value in {"", ".", ".."}):
            raise ValueError(f"{shown(value)} is not the name of a file beside the window's files")
        return value


class SourceSpec(Spec):
    """One source: `config/sources/NAME.yaml`. The file's name is the source's name."""

    name: str = Field(exclude=True, json_schema_extra={"from_file_name": True})
    description: str = Field(default="", description="Free text for people")
    kind: str = Field(description="Storage system: an installed kind (forebay sources lists them)")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the kind")
    columns: dict[ColumnName, ColumnType] = Field(
        min_length=1,
        description="Columns to read, each with its type: `string`, `int`, `float`, `bool`, "
        "`timestamp`, `list<string>`, `list<int>` or `list<float>`. Columns that are not listed "
        "are never decoded",
    )
    event_time: str | None = Field(
        default=None, description="Timestamp column that says when a row's event happened"
    )
    starts: Instant | None = Field(
        default=None,
        description="The source has rows from this instant on: nothing earlier is read or waited "
        "for",
    )
    ends: Instant | None = Field(
        default=None,
        description="The source has no rows from this instant on: nothing later is read or waited "
        "for",
    )
    ready: ReadySpec = Field(
        default=ReadySpec(),
        description="When a window of this source is complete, and what to do if it is not",
    )
    label_null: Literal["fail", "dead_letter"] = Field(
        default="fail",
        description="What happens to a row without a label, or, with several labels, without any",
    )
    bad_rows: Literal["fail", "dead_letter"] = Field(
        default="fail",
        description="What happens to a row or file that cannot be read or trained on: `fail` the "
        "run and say where it is, or count it and keep it as a `dead_letter`",
    )
    dead_letter_rows_max: int | None = Field(
        default=None,
        ge=0,
        description="Most dead letters of one window; more fail the run. By default there is no "
        "limit",
    )
    dead_letter_bytes_max: int = Field(
        default=DEAD_LETTER_BYTES_MAX,
        ge=0,
        description="Most bytes of a window's dead letters that are kept; the rest are only "
        "counted",
    )

    def part_of(self, span: Interval) -> tuple[Interval | None, str]:
        """The part of a span between `starts` and `ends`, or None and why it is empty."""
        part = span.clipped(self.starts, self.ends)
        if part is not None:
            return part, ""
        early = self.starts is not None and span.end <= self.starts
        return None, BEFORE_START if early else AFTER_END
