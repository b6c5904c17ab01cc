"""What was written, as the tests themselves remember it: segments of a log and Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support import independent
from support.sequences.declared import BY_PATH, BY_TIME

JUMP = timedelta(hours=1)


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
        """The newest time that no clock has stamped ahead."""
        return max((each.stamp for each in self.segments if not each.odd), default=None)

    def between(self, first: int, end: int) -> list[Segment]:
        """Segments of offsets [first, end), which cuts none of them."""
        found = [each for each in self.segments if first <= each.base < end]
        assert not found or found[-1].end <= end, f"{self.name}: {end} lies inside a segment"
        return found

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


@dataclass(frozen=True)
class Rows:
    """Some rows of one source: sums of those with a label, and where those without lie."""

    sums: independent.Sums
    dead: frozenset[tuple[str, int]] = frozenset()

    @property
    def count(self) -> int:
        return self.sums["rows"] + len(self.dead)


@dataclass
class Log:
    """The log below a folder, by partition."""

    folder: Path
    partitions: dict[str, Partition] = field(default_factory=dict)

    def append(
        self, name: str, added: Iterable[tuple[datetime, int, tuple[int, ...], bool]]
    ) -> None:
        """Segments of (stamp, rows, rows without a label, whether its clock was wrong)."""
        partition = self.partitions.setdefault(name, Partition(name))
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
        ids, dead = [], set()
        for name, (first, end) in offsets.items():
            for each in self.partitions[name].between(first, end):
                nulls = set(each.nulls)
                kept = [row for row in range(each.base, each.end) if row - each.base not in nulls]
                ids.append(independent.row_ids(name, np.array(kept, np.int64)))
                dead |= {(name, each.base + row) for row in nulls}
        return Rows(independent.sums(ids), frozenset(dead))

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
    """Parquet files by source and path."""

    data: Path
    by_source: dict[str, dict[str, File]] = field(
        default_factory=lambda: {BY_TIME: {}, BY_PATH: {}}
    )

    def write(self, source: str, name: str, file: File) -> None:
        """Add a file, or replace it."""
        relative = f"date={file.day:%Y-%m-%d}/{name}.parquet"
        path = self.data / source / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_name(f".{path.name}")
        pq.write_table(table(file.times, file.nulls), written, row_group_size=8)
        written.rename(path)
        self.by_source[source][relative] = file

    def remove(self, source: str, path: str) -> None:
        (self.data / source / path).unlink()
        del self.by_source[source][path]

    def rows(self, source: str, first: datetime, end: datetime) -> Rows:
        """What lies in a span of time now: by path, or by the rows' own times."""
        ids, dead = [], set()
        for path, file in self.by_source[source].items():
            inside = [
                row
                for row, time in enumerate(file.times)
                if first <= (file.day if source == BY_PATH else time) < end
            ]
            nulls = set(file.nulls)
            kept = [row for row in inside if row not in nulls]
            ids.append(independent.row_ids(path, np.array(kept, np.int64)))
            dead |= {(path, row) for row in inside if row in nulls}
        return Rows(independent.sums(ids), frozenset(dead))
