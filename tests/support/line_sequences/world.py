"""What was ever written, when, and whether it is there now: the judge's own knowledge."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support import independent
from support.line_sequences.declared import DAYS
from support.sequences.declared import CLICKS, DAILY, DAY, HISTORY, day
from support.sequences.truth import Log, Partition, Segment, table

STEP = timedelta(hours=3)
# A row's other time: `event_time` may be changed to it.
SEEN_LATER = timedelta(hours=3)
SEGMENT_ROWS = 2
_TICK = timedelta(microseconds=1)


class Row(NamedTuple):
    """One row: path or partition, number in it, and how often the log had been made anew."""

    place: str
    number: int
    epoch: int = 0


Rows = frozenset[Row]
NO_ROWS: Rows = frozenset()


@dataclass
class File:
    """A Parquet file. day: of its folder."""

    path: str
    day: datetime
    times: tuple[datetime, ...]
    there: bool = True


@dataclass
class Files:
    """The Parquet files of one source. Names are never used again: a row keeps its time."""

    folder: Path
    by_path: dict[str, File] = field(default_factory=dict)

    def write(self, number: int, rows: int, minutes: int, begin_hours: float = 0) -> None:
        begin = day(number) + timedelta(hours=begin_hours)
        times = tuple(begin + each * timedelta(minutes=minutes) for each in range(rows))
        path = f"date={day(number):%Y-%m-%d}/f{len(self.by_path)}.parquet"
        self.by_path[path] = File(path, day(number), times)
        seen = pa.array([time + SEEN_LATER for time in times], pa.timestamp("us", "UTC"))
        written = table(times, ()).append_column("seen", seen)
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(written, self.folder / path, row_group_size=8)

    def mark(self, name: str) -> None:
        for folder in (self.folder, *self.folder.glob("date=*")):
            (folder / name).touch()

    def move(self, path: str) -> None:
        file, aside = self.by_path[path], self.folder.with_name(f".{self.folder.name}") / path
        here = self.folder / path
        one, other = (here, aside) if file.there else (aside, here)
        other.parent.mkdir(parents=True, exist_ok=True)
        one.rename(other)
        if file.there and not list(here.parent.glob("*.parquet")):
            shutil.rmtree(here.parent)  # a partition that has gone
        file.there = not file.there

    def times(self, column: str) -> dict[Row, datetime]:
        later = SEEN_LATER if column == "seen" else timedelta(0)
        return {
            Row(file.path, row): time + later
            if column
            else min(max(time, file.day), file.day + DAY - _TICK)
            for file in self.by_path.values()
            if file.there
            for row, time in enumerate(file.times)
        }


@dataclass
class Clicks(Log):
    """The log, and what happens to its folders.

    gone: partitions whose folder was moved away. emptied: those whose folder is there, empty.
    """

    epoch: int = 0
    gone: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)

    def next(self, name: str) -> datetime:
        newest = [each.newest for each in self.partitions.values() if each.newest is not None]
        own = self.partitions[name].newest if name in self.partitions else None
        return (own or max(newest, default=day(0) - STEP)) + STEP

    def write(self, name: str, begin: datetime, segments: int, step: timedelta = STEP) -> None:
        stamps = [begin + number * step for number in range(segments)]
        self.append(name, [(stamp, SEGMENT_ROWS, (), False) for stamp in stamps])

    def move(self, name: str) -> None:
        here, aside = self.folder / name, self.folder.with_name(".aside") / name
        aside.parent.mkdir(parents=True, exist_ok=True)
        one, other = (aside, here) if name in self.gone else (here, aside)
        if one.exists():
            one.rename(other)
        self.gone ^= {name}
        self.touched.add(name)

    def empty(self, name: str) -> None:
        for each in (self.folder / name).iterdir():
            each.unlink()
        self.partitions[name].kept_from = self.partitions[name].end
        self.emptied.add(name)
        self.touched.add(name)

    def make_anew(self, segments: int, begin: datetime) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.epoch += 1
        self.partitions.clear()
        self.gone.clear()
        self.emptied.clear()
        self.write("0", begin, segments)
        self.touched.add("0")

    def is_there(self, name: str) -> bool:
        return name not in self.gone and name not in self.emptied

    def rows_of(self, partition: Partition, segments: Iterable[Segment]) -> Rows:
        return frozenset(
            Row(partition.name, row, self.epoch)
            for each in segments
            for row in range(each.base, each.end)
        )


class World:
    def __init__(self, root: Path, random: Random) -> None:
        """History of a few days, and the stream's first days; of some, the first ones are empty."""
        self.begins = random.choice([0, 0, 0, 0, 0, 2])
        self.files = {name: Files(root / "data" / name) for name in (HISTORY, DAILY)}
        self.clicks = Clicks(root / "data" / CLICKS)
        for number in range(self.begins - 1 if self.begins else -3, DAYS):
            self.files[HISTORY].write(number, random.randint(4, 14), random.choice([50, 90, 110]))
        for number in range(self.begins, DAYS):
            self.files[DAILY].write(number, random.randint(2, 8), 20)
        for name in random.choice(["0", "01", "01"]):
            self.clicks.write(name, day(self.begins), random.choice([2, 4, 7]) * 8)


def sums_of(rows: Rows) -> independent.Sums:
    by_place: dict[str, list[int]] = {}
    for row in rows:
        by_place.setdefault(row.place, []).append(row.number)
    found = [
        independent.row_ids(place, np.array(sorted(numbers), np.int64))
        for place, numbers in by_place.items()
    ]
    return independent.sums(found)


def within(times: Mapping[Row, datetime], first: datetime, end: datetime) -> Rows:
    return frozenset(row for row, time in times.items() if first <= time < end)
