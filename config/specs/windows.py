"""Windows: hourly or daily spans of time whose keys sort as text. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Protocol
from zoneinfo import ZoneInfo

from forebay.system.names import shown

HOUR = timedelta(hours=1)
# Windows in one range: more than ten years of hours.
RANGE_MAX = 100_000
WARM_START_SEPARATOR = "_"


class Spanned(Protocol):
    """Anything with a start and an end: windows are ordered by their ends, then their starts."""

    @property
    def start(self) -> datetime:
        """First instant, aware."""

    @property
    def end(self) -> datetime:
        """First instant after it, aware."""


def order_of(one: Spanned) -> tuple[datetime, datetime]:
    """The sort key of a window: compare these, never the window keys."""
    return one.end, one.start


class WindowSize(StrEnum):
    """How much time one run covers."""

    HOUR = "1h"
    DAY = "1d"


@dataclass(frozen=True, order=True)
class Interval:
    """Half-open span of time [start, end), both aware and in UTC."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%dT%H:%MZ} to {self.end:%Y-%m-%dT%H:%MZ}"

    def shifted_back(self, offset: timedelta) -> Interval:
        """The same span `offset` earlier: the data that a run with this offset reads."""
        return Interval(self.start - offset, self.end - offset)

    def clipped(self, start: datetime | None, end: datetime | None) -> Interval | None:
        """The part between `start` and `end`; None when nothing is left."""
        low = max(self.start, start) if start else self.start
        high = min(self.end, end) if end else self.end
        return Interval(low, high) if low < high else None

    @property
    def hours(self) -> int:
        """Hours that the span touches, counted from its start."""
        return -(-(self.end - self.start) // HOUR)


@dataclass(frozen=True, order=True)
class Window:
    """One run's span of time and its key: `2026-03-01` (day) or `2026-03-01T07` (hour, UTC)."""

    span: Interval
    key: str

    @property
    def start(self) -> datetime:
        return self.span.start

    @property
    def end(self) -> datetime:
        return self.span.end


@dataclass(frozen=True)
class WindowGrid:
    """All windows of one size. Days follow the calendar of `zone`; hours are UTC hours."""

    size: WindowSize
    zone: str = "UTC"

    def at(self, instant: datetime) -> Window:
        """The window that holds `instant` (aware)."""
        if self.size is WindowSize.HOUR:
            start = instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
            return Window(Interval(start, start + HOUR), start.strftime("%Y-%m-%dT%H"))
        return self._day(instant.astimezone(ZoneInfo(self.zone)).date())

    def after(self, window: Window) -> Window:
        return self.at(window.end)

    def before(self, window: Window) -> Window:
        return self.at(window.start - timedelta(microseconds=1))

    def parse(self, key: str) -> Window:
        """The window with this key.

        Raises:
            ValueError: when the key does not belong to this grid.
        """
        hourly = self.size is WindowSize.HOUR
        form, hour = ("%Y-%m-%dT%H", "T07") if hourly else ("%Y-%m-%d", "")
        try:
            parsed = datetime.strptime(key, form)  # noqa: DTZ007 - the zone is added below
        except ValueError:
            like = f"{_day_of(key)}{hour}"
            raise ValueError(
                f"{shown(key)} is not a window of size {self.size}: write one like {like}"
            ) from None
        window = self.at(parsed.replace(tzinfo=UTC)) if hourly else self._day(parsed.date())
        if window.key != key:
            raise ValueError(f"write {shown(key)} as {window.key!r}")
        return window

    def between(self, first: str, last: str) -> list[Window]:
        """Windows from `first` to `last`, both included. In hourly grids a date is all its hours.

        Raises:
            ValueError: when a text is not a window, when `last` is before `first`, or when there
                are more than RANGE_MAX windows.
        """
        start, end = self._named(first)[0], self._named(last)[1]
        one = HOUR if self.size is WindowSize.HOUR else 24 * HOUR
        count = (end.start - start.start) // one + 1
        if count > RANGE_MAX:
            raise ValueError(f"{count:,} windows are too many: name at most {RANGE_MAX:,}")
        if end.start < start.start:
            raise ValueError(f"the last window {end.key} is before the first {start.key}")
        windows, window = [start], self.after(start)
        while window.start <= end.start:
            windows.append(window)
            window = self.after(window)
        return windows

    def _named(self, text: str) -> tuple[Window, Window]:
        if self.size is WindowSize.HOUR and len(text) == len("2026-03-01"):
            return self.parse(text + "T00"), self.parse(text + "T23")
        window = self.parse(text)
        return window, window

    def _day(self, day: date) -> Window:
        zone = ZoneInfo(self.zone)
        start = datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)
        end = datetime.combine(day + timedelta(days=1), time(), tzinfo=zone).astimezone(UTC)
        return Window(Interval(start, end), day.isoformat())


def _day_of(text: str) -> str:
    """The day that a text begins with, or an example of one."""
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return "2026-03-01"


def warm_start_window(start: datetime, first: Window) -> Window:
    """History before the first window as one span; its key sorts before every later window's."""
    key = f"{start.date().isoformat()}{WARM_START_SEPARATOR}{first.key}"
    return Window(Interval(start, first.start), key)


def is_warm_start(key: str) -> bool:
    return WARM_START_SEPARATOR in key


def first_window_key(key: str) -> str:
    """The key of the window that a warm start leads up to; any other key unchanged."""
    return key.rpartition(WARM_START_SEPARATOR)[2]
