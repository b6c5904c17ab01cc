"""What was written, as the tests recorded it: segments of a log and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support import independent
from support.sequences.declared import DAILY, HISTORY

JUMP = timedelta(hours=1)
# When it was written, rows, rows without a label, and whether its clock was wrong.
Added = tuple[datetime, int, tuple[int, ...], bool]


def table(times: Sequence[datetime], nulls: Iterable[int]) -> pa.Table:
    """Rows of these times; those at `nulls` have no label."""
    dead = set(nulls)
    count = len(times)
    return pa.table(
        {
            "event": pa.array(range(count), pa.int64()),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "price": pa.array([1.0] * count),
            "clicked": pa.array([None if row in dead else row % 2 for row in range(count)]),
        }
    )


@dataclass(frozen=True)
class Segment:
    """Rows [base, base + rows) of a partition. nulls: rows of it without a label."""

    base: int
    rows: int
    stamp: datetime
    nulls: tuple[int, ...] = ()
    odd: bool = False

    @property
    def end(self) -> int:
        return self.base + self.rows

    @property
    def name(self) -> str:
        return f"{self.base:020d}-{self.rows:08d}-{int(self.stamp.timestamp() * 1000):015d}.arrow"


@dataclass
class Partition:
    """All that was ever appended.

    kept_from: the first offset that was not trimmed. sure: whether the documented rule for odd
    times is clear of all its segments, so that a border can be foretold.
    """

    name: str
    segments: list[Segment] = field(default_factory=list)
    kept_from: int = 0
    sure: bool = True

    @property
    def end(self) -> int:
        return self.segments[-1].end if self.segments else 0

    @property
    def newest(self) -> datetime | None:
        return max((each.stamp for each in self.segments if not each.odd), default=None)

    def between(self, first: int, end: int) -> list[Segment]:
        found = [each for each in self.segments if first <= each.base < end]
        assert not found or found[-1].end <= end, f"{self.name}: {end} lies inside a segment"
        return found

    def views(self) -> Iterator[Sequence[Segment]]:
        """What may be stored of it in the end."""
        yield self.segments

    def late(self, segments: int, rows: int) -> int:
        """How many segments so many of these rows are."""
        return segments

    def is_ahead(self, late: int) -> bool:
        """Whether so many late segments are few beside those that they come after."""
        return all(_is_ahead(view, late) for view in self.views())

    def is_dense(self) -> bool:
        """Whether its newest times rise by no jump: what is late or far ahead is clear then."""
        return all(_is_dense(view) for view in self.views())

    def place(self, offset: int) -> int:
        """The same for all offsets that part the rows in the same way."""
        return offset

    def reached(self, instant: datetime) -> int:
        """The first offset, of those that are stored, at which the partition has reached a time."""
        first: int | None = None  # of the odd ones since the last one that is not
        for each in self.segments:
            if each.base < self.kept_from:
                continue
            first = each.base if first is None else first
            if each.odd:
                continue
            if each.stamp >= instant:
                return first
            first = None
        return self.end


def _is_ahead(segments: Sequence[Segment], late: int) -> bool:
    newest = max((each.stamp for each in segments if not each.odd), default=None)
    behind = [each for each in segments if newest is not None and each.stamp < newest]
    since = segments[::-1]
    trailing = next((n for n, each in enumerate(since) if each.stamp == newest), 0)
    return len(behind) > 2 * (trailing + late)


def _is_dense(segments: Sequence[Segment]) -> bool:
    newest = segments[-101:]
    if not newest or any(each.odd for each in newest):
        return False
    rises = (later.stamp - one.stamp for one, later in pairwise(newest))
    return not any(rise > JUMP for rise in rises)


@dataclass(frozen=True)
class Rows:
    """Some rows of one source: sums of those with a label, and where those without lie."""

    sums: independent.Sums
    dead: frozenset[tuple[str, ...]] = frozenset()

    @property
    def count(self) -> int:
        return self.sums["rows"] + len(self.dead)


@dataclass
class Log:
    folder: Path
    partitions: dict[str, Partition] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """What error texts call it."""
        return f"log data/{self.folder.name}, partition"

    def partition(self, name: str) -> Partition:
        return self.partitions.setdefault(name, Partition(name))

    def append(self, name: str, added: Iterable[Added]) -> None:
        partition = self.partition(name)
        for stamp, rows, nulls, odd in added:
            segment = Segment(partition.end, rows, stamp, nulls, odd)
            path = self.folder / name / segment.name
            path.parent.mkdir(parents=True, exist_ok=True)
            written = table([stamp] * rows, nulls)
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, written.schema) as out:
                out.write_table(written)
            partition.segments.append(segment)

    def trim(self, name: str, count: int) -> None:
        """Remove the oldest segments that are stored, never the last one."""
        partition = self.partitions[name]
        stored = [each for each in partition.segments if each.base >= partition.kept_from]
        for each in stored[: min(count, len(stored) - 1)]:
            (self.folder / name / each.name).unlink()
            partition.kept_from = each.end

    def rows(self, offsets: dict[str, tuple[int, int]]) -> Rows:
        """The rows between these offsets, trimmed or not."""
        ids: list[Any] = []
        dead: set[tuple[str, ...]] = set()
        for name, (first, end) in offsets.items():
            for each in self.partitions[name].between(first, end):
                nulls = set(each.nulls)
                kept = [row for row in range(each.base, each.end) if row - each.base not in nulls]
                ids.append(independent.row_ids(name, np.array(kept, np.int64)))
                dead |= {(name, str(each.base + row)) for row in nulls}
        return Rows(independent.sums(ids), frozenset(dead))

    def offsets(self, offsets: dict[str, tuple[int, int]]) -> dict[str, int]:
        """How many offsets of each kind a model counts: where each is a row, none."""
        return dict.fromkeys(("records", "control", "aborted", "compacted"), 0)

    def letter(self, location: dict[str, Any]) -> tuple[str, ...]:
        return str(location["partition"]), str(location["offset"])

    def outside(
        self, offsets: dict[str, tuple[int, int]], first: datetime, end: datetime
    ) -> tuple[int, int]:
        """Rows with a label between these offsets that are older than a window, and newer."""
        late = odd = 0
        for name, span in offsets.items():
            for each in self.partitions[name].between(*span):
                labelled = each.rows - len(each.nulls)
                late += labelled * (each.stamp < first)
                odd += labelled * (each.stamp >= end)
        return late, odd


@dataclass(frozen=True)
class File:
    """A Parquet file: times of its rows, rows without a label, and the day of its folder."""

    day: datetime
    times: tuple[datetime, ...]
    nulls: tuple[int, ...]


@dataclass
class Files:
    """Parquet files by source and path.

    changed_at: by source and path, which of all changes of files was its last one.
    """

    data: Path
    by_source: dict[str, dict[str, File]] = field(default_factory=lambda: {HISTORY: {}, DAILY: {}})
    changed_at: dict[str, int] = field(default_factory=dict)
    changes: int = 0

    def write(self, source: str, name: str, file: File) -> None:
        relative = f"date={file.day:%Y-%m-%d}/{name}.parquet"
        path = self.data / source / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_name(f".{path.name}")
        pq.write_table(table(file.times, file.nulls), written, row_group_size=8)
        written.rename(path)
        self.by_source[source][relative] = file
        self._change(source, relative)

    def remove(self, source: str, path: str) -> None:
        (self.data / source / path).unlink()
        del self.by_source[source][path]
        self._change(source, path)

    def _change(self, source: str, path: str) -> None:
        self.changes += 1
        self.changed_at[f"{source}/{path}"] = self.changes

    def rows(self, source: str, first: datetime, end: datetime) -> Rows:
        """What lies in a span of time now: by path, or by the rows' own times."""
        ids: list[Any] = []
        dead: set[tuple[str, ...]] = set()
        for path, file in self.by_source[source].items():
            inside = [
                row
                for row, time in enumerate(file.times)
                if first <= (file.day if source == DAILY else time) < end
            ]
            nulls = set(file.nulls)
            kept = [row for row in inside if row not in nulls]
            ids.append(independent.row_ids(path, np.array(kept, np.int64)))
            dead |= {(path, str(row)) for row in inside if row in nulls}
        return Rows(independent.sums(ids), frozenset(dead))
