"""The contract of a source: a part that plans, a part that reads, and two that a kind may add.

Two methods are abstract: `scan` and `open`. docs/write-a-source.md builds a kind step by step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.borders import Borders, Proposed
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit
from forebay.system.clock import utc_now

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


def is_held(stored: pa.DataType, declared: ColumnType) -> bool:
    """Whether the column of a chunk may have this type: the declared one, or float32 for float.

    Every float32 is the same value as a double.
    """
    if declared is ColumnType.FLOAT:
        return stored.id in _FLOATS
    return bool(stored.equals(ARROW_TYPES[declared]))


_FLOATS = {pa.float32().id, pa.float64().id}


@dataclass(frozen=True)
class Finding:
    """Something wrong between declaration and storage. `path` is the key in the source's YAML."""

    path: tuple[str, ...]
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Readiness:
    """Whether all rows of a span are there, and the sentence that says why not.

    not_before: while it is in the future, the span is not over: waiting costs nothing of
    `ready.wait`.
    """

    ready: bool
    reason: str = ""
    not_before: datetime | None = None


def ended(span: Interval, delay: timedelta = timedelta(0)) -> Readiness:
    """Whether the clock has passed the span: all that storage without markers can be asked.

    delay: how long after the span's end its last records may still arrive.
    """
    over = span.end + delay
    if utc_now() >= over:
        return Readiness(ready=True)
    still = f", and records arrive until {over.isoformat()}" if delay else ""
    reason = f"its time ends at {span.end.isoformat()}{still}"
    return Readiness(ready=False, reason=reason, not_before=over)


@dataclass(frozen=True)
class Description:
    """What is stored: column name to type text, partitions, newest row's time, or why nothing."""

    columns: dict[str, str]
    partitions: list[str] = field(default_factory=list)
    newest: datetime | None = None
    empty_reason: str = ""


@dataclass(frozen=True)
class PartitionLag:
    """How far what is sealed of a partition is behind its end.

    count: offsets that come after it. oldest: the time of the first record among them; None where
    there is none, or nobody wrote it down.
    """

    partition: str
    count: int
    oldest: datetime | None


@dataclass(frozen=True)
class Scan:
    """Result of one pass over the storage for many spans.

    tasks: a table of TASK_SCHEMA, ordered by (span, hour, first path).
    fingerprints: one text for each span; equal texts mean equal rows behind the tasks.
    storage_calls: listings, footers and metadata reads that the pass made.
    offsets: for each span [first, end) of its partitions, where the storage counts its rows.
    last_segments: what says later that the same rows lie before the last span's end.
    """

    tasks: pa.Table
    fingerprints: list[str]
    storage_calls: int
    offsets: list[dict[str, tuple[int, int]]] = field(default_factory=list)
    last_segments: dict[str, str] = field(default_factory=dict)


class OpenedSource(SourceKind):
    """One declared source, opened: what all its parts have.

    Opened by every process and thread that needs it, and closed by whoever opened it: an
    object is used by one thread at a time, and no state may be kept from one to the next. What
    planning has to hand over to reading is written into the tasks.
    """

    options: Spec

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        """Keep the declaration; the storage is not asked anything yet.

        Args:
            spec: the source's YAML, checked. A kind that needs `event_time` has it.
            options: of the class `Options`, validated.
            root: the project's folder, where relative paths start.
        """
        self.spec = spec
        self.options = options
        self.root = root

    def close(self) -> None:
        """Give connections back.

        When called: once, last. Never called: while a chunk is being read, or when a process is
        killed.
        """


class SourcePlanner(OpenedSource, ABC):
    """From spans of time to tasks: all that planning threads and processes know of a source.

    borders: a kind that cuts a stream by offsets asks it where windows begin and end; whoever
    plans sets it to what the pipeline has decided. cache: for what a kind would read again at each
    plan.
    """

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        self.borders: Borders = Proposed()
        self.cache = PlanCache()

    @abstractmethod
    def scan(self, spans: Sequence[Interval]) -> Scan:
        """Plan all spans in one pass over the storage. A row belongs to exactly one span.

        When called: once `readiness` has said yes for all spans; by `forebay preview` with one long
        span, and by `forebay check --connect` with some that are spread over weeks. Never called:
        by a data executor. Spans are disjoint and ascending, already moved by the stream's offset
        and clipped to the source's `starts` and `ends`.

        Raises:
            DataError: when something there cannot be read and the policy is `fail`.
            InfrastructureError: when the storage does not answer.
        """

    def readiness(self, span: Interval) -> Readiness:
        """Whether all rows of the span are there now: by default, once the clock has passed it.

        When called: before `scan` and by `forebay why`, again and again until it says yes or
        `ready.wait` is over. Never called: for a window that has not ended.
        """
        return ended(span)

    def readiness_of(self, spans: Sequence[Interval]) -> list[Readiness]:
        """The same for several spans, perhaps none. Override it where one listing serves them all.

        When called: once `readiness` has said yes, to find later windows for the same scan. Never
        called: for windows that have not ended.
        """
        return [self.readiness(span) for span in spans]

    def look(self, spans: Sequence[Interval]) -> Scan:
        """What `scan` would plan for these spans, for a comparison with earlier plans.

        A kind may leave out what only planning needs: the rest of the storage, and what is wrong
        with it. Where nothing is there any more, the spans have no tasks.

        When called: by whoever asks whether a window's data has changed since it was trained.
        Never called: for a stream, or before a window was planned.
        """
        return self.scan(spans)

    def rewritten(self, paths: Collection[str]) -> bool:  # noqa: ARG002
        """Whether these files of a plan hold only rows that other files held before.

        When called: after `look`, for files that the earlier plan does not have. Never called:
        where rows are more or fewer than they were. Override it for a storage system that compacts
        its files.
        """
        return False

    @property
    def cut(self) -> str:
        """What says to which window a row belongs, in words.

        A line continues only with rows that belong to windows by the same as before: otherwise some
        would be in two of them, or in none. A kind overrides it whose options decide that.

        When called: after each `scan`. Never called: by `look` or a reader.
        """
        return f"column {self.spec.event_time!r}" if self.bounded else "their place in the stream"


class SourceReader(OpenedSource, ABC):
    """From tasks to rows: all that data executors and their children know of a source."""

    @abstractmethod
    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        """Read a task from `position` (None: its start) to its end.

        When called: in a thread of a data executor, perhaps on another machine and months after
        `scan`, and again for the same task after a failure; by `forebay preview` and `forebay
        check` too. Never called: for a task that another kind or source has planned. The iterator
        may be left before its end, and then this object is closed.

        Starting again at any position that a chunk named repeats no row before it and skips none
        after it. Rows outside the task's span are left out and counted nowhere. There is at least
        one chunk; the last may be empty, and its `end` is after everything.

        Args:
            task: one that `scan` planned, with its window and `data_from`, `data_to`.
            position: a `Chunk.position` of this task, or a chunk's `end`.
            columns: the declared columns that are wanted, in this order; perhaps none.
            chunk_rows: the most rows that a chunk may have.

        Raises:
            DataError: for rows that cannot be decoded when `bad_rows` is `fail`, and for content
                other than what was planned.
        """

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        """The smallest parts of a task that can be read alone, from the one that holds `position`.

        When called: in a child that may die, after a process died while it read the task: the unit
        that kills is named, and `bad_rows` decides about its rows. Never called: for a task that
        killed nobody. Without gaps, in reading order; what a look at the storage costs is paid as
        units are taken. Override it and `before` where a row range is more than has to be lost
        together, or a position's `part` is not the index of its range.
        """
        return ReadUnit.of_ranges(task, position, partial(self.location, task))

    def before(self, task: DataTask, position: Position) -> DataTask:
        """The task without what comes from `position` on: the first or the end of one of its units.

        When called: with `units`, and by whoever reads around one of them. Never called: for a task
        that killed nobody. It must not decode anything after the position.
        """
        ranges = task.ranges[: position.part]
        if position.row:
            cut = task.ranges[position.part]
            rows = position.row - cut.first
            ranges += (cut.model_copy(update={"end": position.row, "rows": rows}),)
        return task.model_copy(update={"ranges": ranges})

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        """Where a row of a task is stored, for dead letters and error texts.

        When called: in the thread that reads the task, with a position of one of its rows. Never
        called: for a chunk's `end`. Override it where "file" and "row" are not what a person looks
        for.
        """
        return {"file": task.ranges[position.part].path, "row": position.row}


class Source(SourcePlanner, SourceReader):
    """Both in one class, which is what a kind names. It may have the two parts below too."""


class Describes(OpenedSource, ABC):
    """For a kind that can say what is stored. Without it `forebay preview` shows rows alone."""

    @abstractmethod
    def describe(self) -> Description:
        """Look at the storage: its columns, partitions and newest row.

        When called: by `forebay preview`, `forebay check --connect` and `forebay why`. Never
        called: while a window is planned or read. An empty or missing place is an answer, not an
        error: `empty_reason` says why.
        """

    def findings(self) -> list[Finding]:
        """What declared columns, types and place have against the storage; [] when all fits.

        By default that nothing is there, and columns that `describe` does not name.

        When called: by `forebay check --connect`, and by `forebay preview` after `describe` has
        found something. Never called: while a window is planned or read. It raises nothing for what
        the declaration has wrong.
        """
        found = self.describe()
        if found.empty_reason:
            return [Finding(("options",), "nothing-matched", found.empty_reason)]
        return [
            Finding(("columns", name), "column-missing", f"there is no column {name!r}")
            for name in self.spec.columns
            if name not in found.columns
        ]


class Commits(OpenedSource, ABC):
    """For a stream whose storage keeps positions (Kafka's offsets): Forebay never reads them."""

    @abstractmethod
    def commit(self, group: str, progress: Mapping[str, tuple[DataTask, Position]]) -> None:
        """Tell the storage that all rows before these positions are trained on for good.

        When called: in the job's driver, in a thread of its own, after a checkpoint was sealed; it
        may repeat, and skips seals that a newer one has overtaken. An error is logged and the call
        repeated. Never called: for a bounded kind, or ahead of a seal.

        Args:
            group: name under which the positions are kept, one for each pipeline.
            progress: by task id, the first task of each partition that has not ended, and its first
                row that is not sealed; where all have ended the last one, at (end of its last
                range, 0).
        """

    @abstractmethod
    def lag(self, group: str) -> list[PartitionLag]:
        """How far what was committed under this name is behind the end of each partition.

        When called: by `forebay why`. Never called: while a window is planned or read.

        Raises:
            InfrastructureError: when the storage does not answer.
        """

    @property
    def offset_unit(self) -> str:
        """What the storage's offsets count, in words.

        When called: with `lag`. Never called: elsewhere.
        """
        return "rows"
