"""Parquet footers as columns: rows and event-time bounds of every row group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.common.files.listing import READ_ERRORS, arrow_file, read_failure
from forebay.datatasks.sources.common.row_groups.planner import Footer
from forebay.datatasks.sources.common.values.casting import column_problem, event_times
from forebay.datatasks.sources.common.values.times import UNKNOWN, Times
from forebay.datatasks.sources.parquet.footer_reader import FooterAnswer, FooterReader
from forebay.datatasks.tasks import DataTask, Position, ReadUnit, RowRange
from forebay.errors import DataError

# Planning holds a few of them at a time.
FOOTER_BYTES_MAX = 128 << 20
_TAIL_BYTES = 64 * 1024  # holds most footers, so that one read is enough

Ints = npt.NDArray[np.int64]
Opened = Callable[[str], AbstractContextManager[Any]]


def read_footers(
    paths: Sequence[str], opened: Opened, place: Callable[[str], str], event_time: str | None
) -> list[Footer | str]:
    """The footer of each file, or the reason why it cannot be read: a child process parses them.

    place: gives the full name of a path. event_time: the column whose bounds are wanted.

    Raises:
        DataError: when a file has no such event-time column, or too many files end the child.
        InfrastructureError: when the storage does not answer, or no child can be had.
    """

    def made(path: str, answer: FooterAnswer, content: bytes) -> Footer:
        schema = answer.arrow_schema  # where the event time is not a plain column
        if schema is not None and event_time is not None:
            problem = column_problem(schema, event_time, ColumnType.TIMESTAMP)
            if problem:
                raise DataError(f"{place(path)}: {problem} (event_time of the source)")
        rows, sizes, low, high, state = np.array(answer.groups, np.int64).reshape(-1, 5).T.copy()
        return Footer(rows, sizes, low, high, state, _digest(content))

    with FooterReader(event_time) as reader:
        return reader.read(paths, partial(_tail_or_reason, opened, place), made)


def read_schemas(
    paths: Sequence[str], opened: Opened, place: Callable[[str], str]
) -> list[pa.Schema | str]:
    """The columns of each file, or the reason why they cannot be read; see `read_footers`."""
    with FooterReader(None, schema=True) as reader:
        tail_of = partial(_tail_or_reason, opened, place)
        return reader.read(paths, tail_of, lambda _path, answer, _tail: answer.arrow_schema)


def _tail_or_reason(opened: Opened, place: Callable[[str], str], path: str) -> bytes | str:
    try:
        return footer_bytes(opened, path)
    except READ_ERRORS as error:
        raised = read_failure(error, place(path))
        if raised is not None:
            raise raised from error
        return str(error).strip()


def open_parquet(handle: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:  # noqa: ANN401
    """A file for reading row groups.

    Why a unit: as nanoseconds, Arrow's default, an INT96 time after 2262 becomes one before it.
    """
    return pq.ParquetFile(
        handle, metadata=metadata, pre_buffer=False, coerce_int96_timestamp_unit="us"
    )


def footer_bytes(opened: Opened, path: str) -> bytes:
    """The footer with its length, or more where there is none. ArrowInvalid for a too large one."""
    with opened(path) as handle, arrow_file(handle) as file:
        return _tail(file)


def read_footer(file: pa.NativeFile) -> tuple[pq.FileMetaData | None, str]:
    """A file's metadata, and a digest of the bytes of its footer.

    None of a local file: that Arrow reads its footer again costs less than to parse thousands of
    columns twice. Whoever changes it in that moment is found out by its version at the end.
    """
    content = _tail(file)
    metadata = None if isinstance(file, pa.OSFile) else pq.read_metadata(pa.BufferReader(content))
    return metadata, _digest(content)


def _tail(file: pa.NativeFile) -> bytes:
    size = file.size()
    tail: bytes = file.read_at(min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
    footer = int.from_bytes(tail[-8:-4], "little") + 8
    if footer > size:
        return tail
    if footer > FOOTER_BYTES_MAX:
        raise pa.ArrowInvalid(
            f"its footer has {footer:,} bytes, and at most {FOOTER_BYTES_MAX:,} are read"
        )
    return tail[-footer:] if footer <= len(tail) else file.read_at(footer, size - footer)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def group_ends(metadata: pq.FileMetaData) -> Ints:
    counts = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    return np.cumsum(np.array(counts, np.int64))


class RowGroups:
    """Says which row group of a file holds a row; remembers the file it was asked about last."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._ends: dict[str, Ints] = {}

    def location(self, path: str, row: int) -> dict[str, str | int]:
        group = int(np.searchsorted(self._ends_of(path), row, side="right"))
        return {"file": path, "row_group": group, "row": row}

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        """See `SourceReader.units`: row groups."""

        def borders(each: RowRange) -> list[int]:
            ends = self._ends_of(each.path)
            return [*np.unique(ends[(ends > each.first) & (ends < each.end)]).tolist()]

        def locate(at: Position) -> dict[str, str | int]:
            return self.location(task.ranges[at.part].path, at.row)

        return ReadUnit.of_ranges(task, position, locate, borders)

    def _ends_of(self, path: str) -> Ints:
        if path not in self._ends:
            with self._opened(path) as handle, pq.ParquetFile(handle) as file:
                self._ends = {path: group_ends(file.metadata)}
        return self._ends[path]


def group_times(
    file: pq.ParquetFile, group: int, event_time: str, bounds: tuple[int, int] | None
) -> Times:
    """The time by which each row of a row group is cut: read, nulls filled, clamped to `bounds`.

    A row without a time goes with the group's earliest one. bounds: those by which windows find
    the group, so that a row outside of them is in a window too.

    Raises:
        DataError: when the group holds no time at all and no bounds say one.
    """
    batches = file.iter_batches(
        1 << 20, row_groups=[group], columns=[event_time], use_threads=False
    )
    parts = [event_times(batch, event_time) for batch in batches]
    times = np.concatenate([np.zeros(0, np.int64), *parts])
    known = times[times != UNKNOWN]
    if not len(known) and bounds is None and len(times):
        raise DataError(f"row group {group} holds no time in {event_time!r} at all")
    low = int(known.min()) if len(known) else (bounds or (0, 0))[0]
    times = np.where(times == UNKNOWN, low, times)
    return times if bounds is None else np.clip(times, bounds[0], bounds[1] - 1)
