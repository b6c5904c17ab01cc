"""Data of the Airflow scenarios, each source in its own folder, and which rows a window has.

Expected rows are counted from the files by `support.independent`, without a line of Forebay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support import independent
from support.projects import COLUMNS, DAY, FIRST_DAY, write_history, write_log

HOUR = timedelta(hours=1)
ROWS = 2_000
MANY_ROWS = 100_000
MARKER = "_SUCCESS"
OFFSET = timedelta(hours=24)


def today() -> datetime:
    """The first instant of this day; no window of it is over."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True)
class Stored:
    """A source's folder below `data/`, its kind, and by how much a window reads earlier rows."""

    folder: str
    kind: str
    offset: timedelta = timedelta(0)

    def expected(self, root: Path, start: datetime, end: datetime) -> independent.Sums:
        low, high = start - self.offset, end - self.offset
        folder = root / "data" / self.folder
        if self.kind == "log":
            return independent.log_sums(folder, *map(_milliseconds, (low, high)))
        where = f"\"at\" >= '{low.isoformat()}' and \"at\" < '{high.isoformat()}'"
        days = [f"date={day}/*.parquet" for day in days_between(low, high)]
        return independent.added(*(independent.parquet_sums(folder, where, each) for each in days))

    def files(self, root: Path, start: datetime, end: datetime) -> set[str]:
        """Files of whole days that hold the rows of windows [start, end), below `data/`."""
        low, high = start - self.offset, end - self.offset
        folder = root / "data" / self.folder
        if self.kind == "log":
            span = range(*map(_milliseconds, (low, high)))
            segments = folder.glob("*/*.arrow")
            found = [path for path in segments if int(path.stem.split("-")[2]) in span]
        else:
            days = {f"date={day}" for day in days_between(low, high)}
            found = [path for path in folder.glob("*/*.parquet") if path.parent.name in days]
        return {path.relative_to(root / "data").as_posix() for path in found}


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def days_between(low: datetime, high: datetime) -> list[str]:
    first = low.replace(hour=0, minute=0, second=0, microsecond=0)
    count = -(-(high - first) // DAY)
    return [f"{first + number * DAY:%Y-%m-%d}" for number in range(count)]


HISTORY = Stored("history", "parquet", OFFSET)
CLICKS = Stored("clicks", "log")
ADS_HISTORY = Stored("ads/history", "parquet", OFFSET)
ADS_CLICKS = Stored("ads/clicks", "log")
RECENT_HISTORY = Stored("recent_history", "parquet", OFFSET)
RECENT_CLICKS = Stored("recent_clicks", "log")
MANY_HISTORY = Stored("many_history", "parquet", OFFSET)
MANY_CLICKS = Stored("many_clicks", "log")
MARKED = Stored("marked", "parquet")
OPTIONAL = Stored("optional", "parquet")
NEVER = Stored("never", "parquet")
TORN = Stored("torn", "parquet")


def write_pair(
    root: Path, pair: Iterable[Stored], first: datetime, days: range, rows: int = ROWS
) -> None:
    history, clicks = pair
    for number in days:
        day = first + number * DAY
        write_history(root / "data" / history.folder, day - OFFSET, rows, seed=100 + number)
        write_log(root / "data" / clicks.folder, day, rows, seed=300 + number)


def write_many(root: Path, days: int, first: int = 0) -> None:
    """Days that train long enough to be met in the middle. first: those before it are there."""
    write_pair(root, (MANY_HISTORY, MANY_CLICKS), FIRST_DAY, range(first, days), MANY_ROWS)


def write_marked(root: Path, stored: Stored, marked: list[bool]) -> None:
    folder = root / "data" / stored.folder
    for number, complete in enumerate(marked):
        write_history(folder, FIRST_DAY + number * DAY, ROWS, seed=500 + number)
        if complete:
            mark(root, stored, FIRST_DAY + number * DAY)


def mark(root: Path, stored: Stored, day: datetime) -> Path:
    marker = root / "data" / stored.folder / f"date={day:%Y-%m-%d}" / MARKER
    marker.touch()
    return marker


def write_torn(root: Path) -> None:
    """Five days: sound, column data damaged, footer cut off, and two that are sound."""
    damages: list[Callable[[Path], None] | None] = [None, flip_middle, cut_footer, None, None]
    for number, damage in enumerate(damages):
        write_torn_day(root, number)
        if damage is not None:
            day = FIRST_DAY + number * DAY
            damage(root / "data" / TORN.folder / f"date={day:%Y-%m-%d}" / "part-1.parquet")


def write_torn_day(root: Path, number: int) -> None:
    day = FIRST_DAY + number * DAY
    write_history(root / "data" / TORN.folder, day, ROWS, files=2, seed=800 + number)


def flip_middle(path: Path) -> None:
    """Damage column data and leave the footer whole: planning counts rows, reading fails."""
    data = bytearray(path.read_bytes())
    for position in range(200, len(data) // 2):
        data[position] ^= 0xFF
    path.write_bytes(bytes(data))


def cut_footer(path: Path) -> None:
    """What a writer that died leaves behind: planning cannot read it."""
    path.write_bytes(path.read_bytes()[:-40])


def source(stored: Stored, starts: datetime = FIRST_DAY - DAY, **changes: Any) -> dict[str, Any]:
    return {
        "kind": stored.kind,
        "options": {"path": f"data/{stored.folder}"},
        "columns": COLUMNS,
        "event_time": "at",
        "starts": f"{starts:%Y-%m-%d}",
        **changes,
    }


def by_day(stored: Stored, **changes: Any) -> dict[str, Any]:
    options = {"path": f"data/{stored.folder}", "window_path": "date={date}/*"}
    return source(stored, options=options, **changes)


def marked_source(stored: Stored, wait: str, late: str) -> dict[str, Any]:
    return by_day(stored, ready={"marker": MARKER, "wait": wait, "late": late})
