"""A bounded sample of a source's rows: some spans of time, some tasks of each, some rows of each.

Read as executors read them, through `Source.scan` and `Source.open`, so that every kind of source
can be sampled. Nothing is decided, recorded or dead-lettered; bad rows are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise, zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES, Source
from forebay.datatasks.sources.common.contract.deleted_rows import RowsDeletedError
from forebay.datatasks.sources.common.values.times import HOUR_US, UNKNOWN
from forebay.datatasks.tasks import Chunk, DataTask
from forebay.system.instants import to_us

CHUNK_ROWS = 4096
TASKS_MAX = 256  # of one sample: opening one costs a request to its storage
_GOLDEN = 0.6180339887

Keep = Callable[[pa.RecordBatch], npt.NDArray[np.bool_]]


@dataclass
class SampleLimits:
    """The most that samples may cost; counted over all of those that share it.

    rows, size_bytes: of rows read, kept or not. seconds: of reading, looked at between two chunks.
    """

    rows: int = 2_000_000
    size_bytes: int = 512 << 20
    seconds: float = 20.0
    _ends: float | None = field(default=None, repr=False)

    def start(self) -> None:
        """Seconds count from the first call on."""
        if self._ends is None:
            self._ends = time.monotonic() + self.seconds

    @property
    def are_spent(self) -> bool:
        late = self._ends is not None and time.monotonic() >= self._ends
        return late or self.rows <= 0 or self.size_bytes <= 0

    def spend(self, batch: pa.RecordBatch) -> None:
        self.rows -= batch.num_rows
        self.size_bytes -= batch.nbytes


@dataclass(frozen=True)
class Sample:
    """Rows of a source, in no order of time.

    table: the asked columns in declared types. times_us: int64[N], microseconds since 1970 UTC by
    which the storage cuts windows: of a stream the publication; where rows do not say it, the
    middle of their hour or of their span, whichever is shorter. read_rows: also those that were
    not kept. stored_rows: of the spans, None where the storage does not count them. is_whole: every
    row of the spans was read.
    """

    table: pa.Table
    times_us: npt.NDArray[np.int64]
    read_rows: int
    stored_rows: int | None
    is_whole: bool


def sample_rows(
    source: Source,
    spans: Sequence[Interval],
    columns: Sequence[str],
    limits: SampleLimits,
    rows_max: int,
    keep: Keep | None = None,
) -> Sample:
    """Read rows of disjoint ascending spans of a source, whose `bad_rows` should be `dead_letter`.

    limits: what is left for this and other samples; it is counted down. rows_max: the most rows
    that are kept, spread over spans and tasks. keep: which rows of a batch are wanted.

    Raises:
        ForebayError: as `Source.scan` and `Source.open` do.
    """
    limits.start()
    name = source.spec.name
    spans, tasks = _planned(source, spans)
    chosen = _chosen(tasks)
    is_whole = len(chosen) == tasks.num_rows
    counts = tasks["rows"]
    stored = None if counts.null_count else int(np.asarray(counts).sum())
    found: list[_Read] = []
    left = rows_max
    for place, row in enumerate(chosen):
        if limits.are_spent or left <= 0:
            is_whole = False
            break
        values = tasks.slice(row, 1).to_pylist()[0]
        task = DataTask.of_row(values, f"{name}/{row}", name, "sample", spans[values["span"]])
        quota = -(-left // (len(chosen) - place))
        kept, at_end = _read(source, task, columns, quota, limits, keep, found)
        left -= kept
        is_whole &= at_end
    return _sample(source, columns, found, stored, is_whole=is_whole)


def spread_spans(over: Interval, count: int, width: timedelta) -> list[Interval]:
    """`count` spans of `width`, one at another place of each of as many equal parts of an interval.

    Where they would touch, they are the whole interval.
    """
    length, found = over.end - over.start, []
    bounds = [over.start + length * index / count for index in range(count)]
    for index, (first, last) in enumerate(pairwise([*bounds, over.end])):
        long = min(width, last - first)
        # Steps of the golden ratio: no two hours of a day alike, wherever the parts begin.
        start = first + (last - first - long) * (index * _GOLDEN % 1)
        if start < start + long:
            found.append(Interval(start, start + long))
    return found


@dataclass(frozen=True)
class _Read:
    batch: pa.RecordBatch
    times_us: npt.NDArray[np.int64]
    read_rows: int


def _planned(source: Source, spans: Sequence[Interval]) -> tuple[Sequence[Interval], pa.Table]:
    """The tasks of the spans; of those only whose rows are all there still."""
    try:
        return spans, source.scan(spans).tasks
    except RowsDeletedError as error:
        left = [span for span in spans if span not in error.reasons]
        return left, source.scan(left).tasks


def _chosen(tasks: pa.Table) -> list[int]:
    """Rows of the task table that are read: first one of each span, then another of each."""
    owners = np.asarray(tasks["span"])
    by_span = [np.flatnonzero(owners == span).tolist() for span in np.unique(owners)]
    # Others first in each span: a storage's first partition is not like all.
    turned = [rows[n % len(rows) :] + rows[: n % len(rows)] for n, rows in enumerate(by_span)]
    turns = zip_longest(*turned)
    return [row for turn in turns for row in turn if row is not None][:TASKS_MAX]


def _read(
    source: Source,
    task: DataTask,
    columns: Sequence[str],
    quota: int,
    limits: SampleLimits,
    keep: Keep | None,
    found: list[_Read],
) -> tuple[int, bool]:
    """Read one task: rows kept, and whether its end was reached."""
    kept = 0
    for chunk in source.open(task, None, list(columns), CHUNK_ROWS):
        limits.spend(chunk.batch)
        size = chunk.batch.num_rows
        rows = np.arange(size) if keep is None else np.flatnonzero(keep(chunk.batch))
        wanted = rows[: quota - kept]
        batch = chunk.batch.take(pa.array(wanted))
        found.append(_Read(batch, _times(task, chunk)[wanted], size))
        kept += len(wanted)
        if len(wanted) < len(rows) or kept >= quota or limits.are_spent:
            return kept, False
    return kept, True


def _times(task: DataTask, chunk: Chunk) -> npt.NDArray[np.int64]:
    """When rows were published, or where that is not known the middle of their hour or span."""
    start, end = to_us(task.data_from), to_us(task.data_to)
    low = start + chunk.hours.astype(np.int64) * HOUR_US
    middle = (low + np.minimum(low + HOUR_US, end)) // 2
    if chunk.published is None:
        return middle
    return np.where(chunk.published == UNKNOWN, middle, chunk.published)


def _sample(
    source: Source,
    columns: Sequence[str],
    found: Sequence[_Read],
    stored: int | None,
    *,
    is_whole: bool,
) -> Sample:
    declared = source.spec.columns
    schema = pa.schema([(name, ARROW_TYPES[declared[name]]) for name in columns])
    return Sample(
        table=pa.Table.from_batches([each.batch.cast(schema) for each in found], schema),
        times_us=np.concatenate([np.zeros(0, np.int64), *(each.times_us for each in found)]),
        read_rows=sum(each.read_rows for each in found),
        stored_rows=stored,
        is_whole=is_whole,
    )
