"""A declaration that is changed key by key, and changed back."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from forebay.config.load import Project
from support.sequences.declared import (
    CLICKS,
    COLUMNS,
    DAILY,
    DAY,
    HISTORY,
    instants,
    pipeline_of,
    project_of,
    sources_of,
)

DAYS = 7
Place = tuple[str, ...]
_FILES = {"event": "int", "at": "timestamp", "seen": "timestamp", "price": "float"}
_COLUMNS = {**_FILES, "clicked": "int"}
_LATER = instants(1, 2, 2.25, 2.5, 3, 3.5, 4)

# What may be changed, and to what. A key that is not declared at first is undone by leaving it out.
CHANGES: dict[Place, tuple[Any, ...]] = {
    ("sources", HISTORY, "starts"): instants(-1, 0, 1, 1.25, 2, 2.5, 3),
    ("sources", HISTORY, "ends"): _LATER,
    ("sources", HISTORY, "event_time"): ("seen",),
    ("sources", HISTORY, "ready", "silent_max"): ("1d", "30d"),
    ("sources", HISTORY, "ready", "marker"): ("_SUCCESS",),
    ("sources", HISTORY, "ready", "late"): ("skip",),
    ("sources", HISTORY, "options", "path"): (f"data/{HISTORY}/**/*.parquet",),
    ("sources", DAILY, "starts"): _LATER,
    ("sources", DAILY, "ends"): _LATER,
    ("sources", DAILY, "ready", "marker"): ("_SUCCESS",),
    ("sources", DAILY, "ready", "late"): ("skip",),
    ("sources", DAILY, "options", "window_path"): (None, "date={date}/**"),
    ("sources", CLICKS, "starts"): _LATER,
    ("sources", CLICKS, "ends"): _LATER,
    ("sources", CLICKS, "ready", "silent_max"): ("12h", "12h", "30d"),
    ("sources", CLICKS, "ready", "late"): ("skip",),
    ("sources", CLICKS, "ready", "marker"): ("_END",),
    ("sources", CLICKS, "options", "close_delay"): ("0s", "2h"),
    ("sources", CLICKS, "options", "timestamp_jump_max"): ("1h", "9h"),
    ("pipeline", "dataset", "timezone"): ("Europe/Berlin", "America/New_York"),
    ("pipeline", "dataset", "window"): ("1h",),
    ("pipeline", "dataset", "start"): instants(-1, 1, 2),
    ("pipeline", "dataset", "end"): instants(3, 5),
    ("pipeline", "dataset", "streams", HISTORY, "offset"): ("0h", "6h", "25h", "48h"),
    ("pipeline", "dataset", "streams", DAILY, "offset"): ("24h",),
    ("pipeline", "dataset", "streams", CLICKS, "offset"): ("1h", "24h"),
    ("pipeline", "dataset", "streams", DAILY): (None,),
    ("pipeline", "dataset", "streams", "again"): ({"sources": [HISTORY], "offset": "72h"},),
    ("pipeline", "train", "warm_start"): instants(-1, -2),
    ("pipeline", "job", "checkpoint", "windows_kept"): (1,),
}
# How often, beside the others, those are changed that a line refuses in ways of their own.
OFTEN = {
    ("sources", CLICKS, "ready", "silent_max"): 6,
    ("pipeline", "dataset", "window"): 2,
    ("pipeline", "dataset", "timezone"): 2,
    ("pipeline", "dataset", "start"): 2,
    ("pipeline", "dataset", "end"): 2,
    ("pipeline", "train", "warm_start"): 2,
    ("pipeline", "job", "checkpoint", "windows_kept"): 6,
}


class Change(NamedTuple):
    """One key as it is now; None: it is left out."""

    place: Place
    value: Any


class Use(NamedTuple):
    """A source in one stream. column: of the rows' time; empty where paths or offsets say it."""

    name: str
    source: str
    offset: timedelta
    column: str
    starts: datetime | None
    ends: datetime | None
    late: str


@dataclass
class Declared:
    """What is declared now. `changes` are those that are not undone, the oldest first.

    stands: whether the processes of jobs stay for the next one.
    """

    root: Path
    warm: bool = False
    stands: bool = False
    log: str = f"data/{CLICKS}"
    values: dict[str, Any] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._declare()

    def _declare(self) -> None:
        """What is undone is as it was, in its old place among its neighbours."""
        options = {"path": self.log, "timestamp_jump_max": "4h"}
        stream = {"kind": "log", "options": options, "columns": COLUMNS}
        sources = sources_of(stream, _COLUMNS, "5d")
        self.values = {"sources": sources, "pipeline": pipeline_of(warm=self.warm)}
        self.values["pipeline"]["job"]["process"] = "standing" if self.stands else "per_window"
        for place, value in self.changes:
            _set(self.values, place, copy.deepcopy(value))

    def move_log(self, path: str) -> None:
        self.log = path
        self._declare()

    def change(self, random: Random) -> str:
        places = sorted(CHANGES.keys() - {each.place for each in self.changes})
        free = [each for each in places if not self._hides(each)]
        (place,) = random.choices(free, [OFTEN.get(each, 1) for each in free])
        value = random.choice(CHANGES[place])
        self.changes.append(Change(place, value))
        self._declare()
        return f"{'.'.join(place[1:])} = {value}"

    def undo(self, which: int = -1) -> str:
        place, _ = self.changes.pop(which)
        self._declare()
        return ".".join(place[1:])

    @property
    def text(self) -> str:
        return json.dumps(self.values, sort_keys=True)

    def _hides(self, place: Place) -> bool:
        """Whether a change that is not undone took away, or holds, what this one is about."""
        return any(
            each.place[: len(place)] == place or place[: len(each.place)] == each.place
            for each in self.changes
        )

    def project(self) -> Project:
        return project_of(self.root, self.values["sources"], self.values["pipeline"])

    # What the judge needs of it, read without Forebay's code ------------------------------------

    def uses(self) -> list[Use]:
        """Sources as streams read them, by the rule of docs/concepts.md."""
        streams = self.values["pipeline"]["dataset"]["streams"]
        pairs = [(stream, name) for stream, of in streams.items() for name in of["sources"]]
        found = []
        for stream, name in pairs:
            source = self.values["sources"][name]
            by_path = name == DAILY and "window_path" in source["options"]
            found.append(
                Use(
                    name if sum(each == name for _, each in pairs) == 1 else f"{name}@{stream}",
                    name,
                    timedelta(hours=int(streams[stream]["offset"].removesuffix("h"))),
                    "" if by_path or name == CLICKS else source["event_time"],
                    _instant(source.get("starts")),
                    _instant(source.get("ends")),
                    source.get("ready", {}).get("late", "fail"),
                )
            )
        return found

    def has(self, window: str, span: tuple[datetime, datetime]) -> bool:
        size = "1h" if "T" in window else "1d"
        return self.values["pipeline"]["dataset"]["window"] == size and self.span(window) == span

    def span(self, window: str) -> tuple[datetime, datetime]:
        if "_" in window:
            start = _instant(self.values["pipeline"]["train"]["warm_start"])
            assert start is not None
            return start, self.span(window.rpartition("_")[2])[0]
        if "T" in window:  # hours are those of UTC, whatever the days are
            start = datetime.fromisoformat(f"{window}:00").replace(tzinfo=UTC)
            return start, start + timedelta(hours=1)
        zone = ZoneInfo(self.values["pipeline"]["dataset"]["timezone"])
        start = datetime.fromisoformat(window).replace(tzinfo=zone)
        return start.astimezone(UTC), (start + DAY).astimezone(UTC)


def _set(values: Any, place: Place, value: Any) -> None:
    for name in place[:-1]:
        values = values.setdefault(name, {})
    if value is None:
        values.pop(place[-1], None)
    else:
        values[place[-1]] = value


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
