"""Which rows of which files belong to which span.

Paths and footers say it, and where a row group crosses a border its event-time column, which is
then read. So planned rows are always exact. A file without a footer is one row group, and what a
footer would say was read from its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.common.files.bundles import Ints, RowRanges
from forebay.datatasks.sources.common.files.listing import READ_ERRORS, read_failure
from forebay.datatasks.sources.common.row_groups.states import ALL_NULL, KNOWN, TO_READ
from forebay.datatasks.sources.common.values.times import UNKNOWN, Spans, Times
from forebay.errors import DataError

# Of a row group whose times are read to cut it: a few bytes may stand for billions of them, and
# each takes some 40 bytes here.
CUT_ROWS_MAX = 1 << 25
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Footer:
    """Row groups of one file. `state` says whether `low` and `high` (microseconds) are known.

    digest: of the footer's bytes; empty where nobody read them.
    """

    rows: Ints
    size_bytes: Ints
    low: Ints
    high: Ints
    state: Ints
    digest: str = ""


@dataclass(frozen=True)
class Candidates:
    """Files that may hold rows of the spans.

    paths: text of each file. footers: what their ends say, or why they cannot be read.
    low, high: the span [low, high) in microseconds that each path names; None when paths are mute.
    """

    paths: pa.Array
    footers: Sequence[Footer | str]
    low: Times | None
    high: Times | None


@dataclass(frozen=True)
class _Groups:
    """Row groups of all readable files, one array for each property."""

    file: Ints
    group: Ints
    first: Ints
    rows: Ints
    size_bytes: Ints
    low: Ints
    high: Ints
    state: Ints


class RangePlanner(ABC):
    """reads: event-time columns that were read. group: what a row group is called in errors."""

    group = ", row group {}"

    def __init__(
        self,
        event_time: str | None,
        policy: Literal["fail", "dead_letter"],
        place: Callable[[str], str],
    ) -> None:
        """`place` gives the full name of a relative path for error texts."""
        self.reads = 0
        self._event_time = event_time
        self._policy = policy
        self._place = place

    @abstractmethod
    def group_times(self, path: str, group: int, bounds: tuple[int, int] | None) -> Times:
        """The time by which each row of a row group is cut. DataError where none can be."""

    @abstractmethod
    def close(self) -> None:
        """Close what `group_times` has open."""

    def no_times(self, path: str) -> str:
        """Why nobody knows when any row of a file happened."""
        del path  # files of some kinds say more
        return no_times(self._event_time)

    def ranges(self, files: Candidates, spans: Spans) -> RowRanges:
        """Row ranges of all files, by span.

        An unreadable file counts one row in each span that it could belong to: nobody can say
        that it holds none of its rows. Of one without times, all rows count.

        Raises:
            DataError: for an unreadable file when the policy is `fail`.
        """
        counts = [1 if isinstance(each, str) else int(each.rows.sum()) for each in files.footers]
        dated = [self._dated(index, files) for index in range(len(files.footers))]
        files = replace(files, footers=dated)
        bad = [index for index, footer in enumerate(files.footers) if isinstance(footer, str)]
        if bad and self._policy == "fail":
            path = files.paths[bad[0]].as_py()
            raise DataError(
                f"{self._place(path)} cannot be read: {files.footers[bad[0]]} "
                "(repair it, or set it aside with bad_rows: dead_letter)"
            )
        groups = self._groups(files)
        inside = spans.index(groups.low)
        whole = (inside == spans.index(groups.high)) & (inside >= 0) & (groups.state != TO_READ)
        near = spans.overlaps(groups.low, groups.high) | (groups.state == TO_READ)
        try:
            crossing = [
                self._crossing(files, groups, index, spans)
                for index in np.flatnonzero(near & ~whole).tolist()
            ]
        finally:
            self.close()
        lost = [self._unreadable(files, index, 0, spans, counts[index]) for index in bad]
        parts = [self._whole(groups, np.flatnonzero(whole), spans), *crossing, *lost]
        return RowRanges.concatenate(parts)

    def _dated(self, index: int, files: Candidates) -> Footer | str:
        """A footer, or that nothing says when its rows happened."""
        footer = files.footers[index]
        if isinstance(footer, str) or files.low is not None:
            return footer
        if ALL_NULL not in footer.state or KNOWN in footer.state:
            return footer
        return self.no_times(files.paths[index].as_py())

    def _groups(self, files: Candidates) -> _Groups:
        known = [
            (index, each) for index, each in enumerate(files.footers) if isinstance(each, Footer)
        ]
        counts = np.array([len(footer.rows) for _, footer in known], np.int64)
        file = np.repeat(np.array([index for index, _ in known], np.int64), counts)
        group = np.arange(len(file)) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = [
            np.concatenate([np.zeros(0, np.int64), *(getattr(footer, name) for _, footer in known)])
            for name in ("rows", "size_bytes", "low", "high", "state")
        ]
        rows, size, low, high, state = columns
        running = np.cumsum(rows) - rows
        starts = np.flatnonzero(group == 0)
        first = running - np.repeat(running[starts], counts[counts > 0])
        filled = self._fill(_Groups(file, group, first, rows, size, low, high, state), files)
        kept = np.flatnonzero(filled.rows > 0)
        return _Groups(*(getattr(filled, name)[kept] for name in _Groups.__annotations__))

    def _fill(self, groups: _Groups, files: Candidates) -> _Groups:
        """Bounds that no footer says: from the path, or from the file's other groups."""
        low, high, state = groups.low.copy(), groups.high.copy(), groups.state.copy()
        if files.low is not None and files.high is not None:
            floor, ceiling = files.low[groups.file], files.high[groups.file] - 1
            known = state == KNOWN
            low = np.where(known, np.clip(low, floor, ceiling), floor)
            high = np.where(known, np.clip(high, floor, ceiling), ceiling)
            state[:] = KNOWN
        nulls, known = state == ALL_NULL, state == KNOWN
        earliest = np.full(len(files.footers), _NEVER)
        np.minimum.at(earliest, groups.file[known], low[known])
        low[nulls] = high[nulls] = earliest[groups.file[nulls]]
        return replace(groups, low=low, high=high, state=state)

    def _whole(self, groups: _Groups, chosen: Ints, spans: Spans) -> RowRanges:
        span = spans.index(groups.low[chosen]).astype(np.int64)
        hour = spans.hours(span, groups.low[chosen]).astype(np.int64)
        first, rows = groups.first[chosen], groups.rows[chosen]
        return RowRanges(
            span, hour, groups.file[chosen], first, first + rows, rows, groups.size_bytes[chosen]
        )

    def _crossing(self, files: Candidates, groups: _Groups, index: int, spans: Spans) -> RowRanges:
        """Count the rows of each span in one row group by reading its event times."""
        file = int(groups.file[index])
        path = files.paths[file].as_py()
        if self._event_time is None:
            raise DataError(
                f"{self._place(path)} covers more time than one window: name an event_time column, "
                "so that its rows can be cut"
            )
        if groups.rows[index] > CUT_ROWS_MAX:
            return self._too_large(files, groups, index, spans)
        bounds = None
        if files.low is not None and files.high is not None:
            bounds = (int(files.low[file]), int(files.high[file]))
        elif groups.state[index] == KNOWN:
            bounds = (int(groups.low[index]), int(groups.high[index]) + 1)
        times = self._times(path, int(groups.group[index]), bounds)
        if times is None:
            return self._unreadable_group(files, groups, index, spans)
        first, size_bytes = int(groups.first[index]), int(groups.size_bytes[index])
        return RowRanges.of(rows_by_span(spans, times, file, first, size_bytes))

    def _times(self, path: str, group: int, bounds: tuple[int, int] | None) -> Times | None:
        self.reads += 1
        place = self._place(path)
        try:
            return self.group_times(path, group, bounds)
        except DataError as error:
            raise DataError(f"{place}: {error}") from error
        except READ_ERRORS as error:
            raised = read_failure(error, place)
            if raised is not None:
                raise raised from error
            if self._policy == "fail":
                raise DataError(
                    f"{place}{self.group.format(group)} cannot be read: {error} "
                    "(repair it, or set it aside with bad_rows: dead_letter)"
                ) from error
            return None

    def _too_large(self, files: Candidates, groups: _Groups, index: int, spans: Spans) -> RowRanges:
        """A row group of which nobody may ask which rows are whose: of all that it touches."""
        file = int(groups.file[index])
        if self._policy == "fail":
            raise DataError(
                f"{self._place(files.paths[file].as_py())}{self.group.format(groups.group[index])} "
                f"has {groups.rows[index]:,} rows, but to be cut by time it may have at most "
                f"{CUT_ROWS_MAX:,} (write smaller ones, or set it aside with bad_rows: dead_letter)"
            )
        found = self._unreadable(files, file, int(groups.first[index]), spans)
        if groups.state[index] == TO_READ:
            return found
        starts, ends = spans.starts[found.span], spans.ends[found.span]
        return found.take((starts <= groups.high[index]) & (ends > groups.low[index]))

    def _unreadable_group(
        self, files: Candidates, groups: _Groups, index: int, spans: Spans
    ) -> RowRanges:
        """A row group that cannot be cut goes whole to the span of its earliest known time."""
        if groups.low[index] == UNKNOWN:
            first = int(groups.first[index])
            return self._unreadable(files, int(groups.file[index]), first, spans)
        one = np.array([index])
        inside = spans.index(groups.low[one]) >= 0
        return self._whole(groups, one[inside], spans)

    def _unreadable(
        self, files: Candidates, file: int, first: int, spans: Spans, rows: int = 1
    ) -> RowRanges:
        every = np.arange(len(spans))
        if files.low is not None and files.high is not None:
            near = (spans.starts < files.high[file]) & (spans.ends > files.low[file])
            every = every[near]
        return RowRanges.of([(int(span), 0, file, first, first, rows, 0) for span in every])


def no_times(event_time: str | None) -> str:
    return f"no row has a time in {event_time!r}: name another event_time"


def rows_by_span(
    spans: Spans, times: Times, file: int, first: int, size_bytes: int
) -> list[tuple[int, ...]]:
    """A range of `RowRanges` for each span that has some of consecutive rows of a file.

    times, size_bytes: of all these rows. first: the row number of the first one.
    """
    found = spans.index(times)
    order = np.argsort(found, kind="stable")[np.count_nonzero(found < 0) :]
    chosen, begins = np.unique(found[order], return_index=True)
    rows: list[tuple[int, ...]] = []
    for span, at in zip(chosen, np.split(order, begins[1:]), strict=False):  # of none, one part
        low, end = first + int(at[0]), first + int(at[-1]) + 1
        hour = int(spans.hours(np.array([span]), times[at].min(keepdims=True))[0])
        size = size_bytes * len(at) // len(times)
        rows.append((int(span), hour, file, low, end, len(at), size))
    return rows
