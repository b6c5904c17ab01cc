"""The contract of a source: describe, check, scan windows, read tasks, commit positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from forebay.config.base import Spec
from forebay.config.sources import ColumnType, SourceSpec
from forebay.config.windows import Interval
from forebay.datatasks.tasks import Chunk, DataTask, Position

ARROW_TYPES: Mapping[ColumnType, pa.DataType] = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.BOOL: pa.bool_(),
    ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    ColumnType.LIST_STRING: pa.list_(pa.string()),
    ColumnType.LIST_INT: pa.list_(pa.int64()),
    ColumnType.LIST_FLOAT: pa.list_(pa.float64()),
}


@dataclass(frozen=True)
class Finding:
    """Something wrong between declaration and storage. `path` is the key in the source's YAML."""

    path: tuple[str, ...]
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Readiness:
    """Whether all rows of a span are there, and the sentence that says why not."""

    ready: bool
    reason: str = ""


def ended(span: Interval) -> Readiness:
    """Whether the clock has passed the span: all that storage without markers can be asked."""
    if datetime.now(UTC) >= span.end:
        return Readiness(ready=True)
    return Readiness(ready=False, reason=f"its time ends at {span.end.isoformat()}")


@dataclass(frozen=True)
class Description:
    """What lies there: column name to type text, partitions, newest row's time, or why nothing."""

    columns: dict[str, str]
    partitions: list[str] = field(default_factory=list)
    newest: datetime | None = None
    empty_reason: str = ""


@dataclass(frozen=True)
class Scan:
    """Result of one pass over the storage for many spans.

    tasks: a table of TASK_SCHEMA, ordered by (span, hour, first path).
    fingerprints: one text for each span; equal texts mean equal rows behind the tasks.
    storage_calls: listings, footers and metadata reads that the pass made.
    """

    tasks: pa.Table
    fingerprints: list[str]
    storage_calls: int


class Source(ABC):
    """One declared source, opened. Not safe for use from several threads; cheap to open again."""

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        """Keep the declaration; `root` is the folder that relative paths start from."""
        self.spec = spec
        self.options = options
        self.root = root

    @abstractmethod
    def describe(self) -> Description:
        """Look at the storage. Never raises for an empty place; says why it is empty."""

    @abstractmethod
    def findings(self) -> list[Finding]:
        """Compare declared columns, types and place with the storage (`check --connect`)."""

    @abstractmethod
    def readiness(self, span: Interval) -> Readiness:
        """Whether the span is complete now; asked again until `ready.wait` is over."""

    def readiness_of(self, spans: Sequence[Interval]) -> list[Readiness]:
        """The same for several spans. Kinds that have to list for it list once for all of them."""
        return [self.readiness(span) for span in spans]

    @abstractmethod
    def scan(self, spans: Sequence[Interval]) -> Scan:
        """Plan all spans in one pass over the storage.

        Spans are disjoint and ascending, already moved by the stream's offset and clipped to
        the source's `starts` and `ends`. A row belongs to exactly one span.

        Raises:
            DataError: when something there cannot be read and the policy is `fail`.
            InfrastructureError: when the storage does not answer.
        """

    @abstractmethod
    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        """Read a task from `position` (None: its start) to its end.

        Starting again at any position that a chunk named repeats no row before it and skips none
        behind it. Rows outside the task's span are left out and counted nowhere. The last chunk
        may be empty; its `end` lies behind everything. Called from a runner thread.

        Raises:
            DataError: for rows that cannot be decoded when `bad_rows` is `fail`.
        """

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        """Where a row of a task lies, for dead letters and error texts."""
        return {"file": task.ranges[position.part].path, "row": position.row}

    def commit(  # noqa: B027 - most storage has no such notion
        self, group: str, progress: Mapping[str, tuple[DataTask, Position]]
    ) -> None:
        """Tell the storage that rows before these positions are sealed (Kafka offsets).

        Called only after a checkpoint is sealed; may repeat. Storage without such a notion
        does nothing.
        """

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Give connections back. Never called before the last chunk was read or given up."""
