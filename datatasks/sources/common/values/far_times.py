"""Times that no row has: of 1970, or years ahead. Their number has another unit, or is none."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from forebay.datatasks.sources.common.values.times import UNKNOWN, Times
from forebay.system.instants import MICROSECOND, from_us, shown_instant, to_us

_YEAR = timedelta(days=365)
AHEAD = 10 * _YEAR
_EARLIEST_US = _YEAR // MICROSECOND
# A number that is read in a wrong unit is of one of these years in the right one.
_FITTING_US = 30 * _YEAR // MICROSECOND
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_TICK_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_NOTHING_US = -1_000_000
_LAST_US = to_us(shown_instant(2**62))
_STORED_UNIT = re.compile(r"\[(s|ms|us|ns)\b")


def are_far(times: Times, now_us: int, ahead: timedelta = AHEAD) -> npt.NDArray[np.bool_]:
    """Which are before 1971, or further ahead of the clock than this; none that is UNKNOWN."""
    early = (times < _EARLIEST_US) & (times != UNKNOWN)
    return np.asarray(early | (times > now_us + ahead // MICROSECOND), np.bool_)


def far_words(value_us: int, now_us: int, stored: str = "") -> str:
    """Such a time, and what explains it. stored: its type, whose numbers else are milliseconds."""
    named = _STORED_UNIT.search(stored)
    unit, shown = named[1] if named else "ms", time_text(value_us)
    if value_us == _LAST_US:  # see `shown_instant`
        return f"after the year 9999, read as {_UNITS[unit]}; its unit is a smaller one"
    if _NOTHING_US <= value_us <= 0:
        return f"{shown}: 0 or -1 in place of a time"
    for other, name in _UNITS.items():
        fitting = value_us * _TICK_NS[other] // _TICK_NS[unit]
        if other != unit and _FITTING_US <= fitting <= now_us + _YEAR // MICROSECOND:
            return f"{shown}, read as {_UNITS[unit]}; as {name} it would be {time_text(fitting)}"
    return shown


def shown_time(value_us: int | None) -> datetime | str | None:
    """A time for people; a text where it is of no year of Python's."""
    shown = None if value_us is None else shown_instant(value_us)
    return shown if shown is None or to_us(shown) == value_us else time_text(value_us or 0)


def time_text(microseconds: int) -> str:
    """An instant in words: whoever stamped it may have been wrong by thousands of years."""
    try:
        return str(from_us(microseconds))
    except OverflowError:
        return f"{microseconds} microseconds after 1970"
