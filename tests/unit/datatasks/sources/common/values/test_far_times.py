"""Times that no row has, and the unit that would explain them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from forebay.datatasks.sources.common.values.far_times import are_far, far_words, shown_time
from forebay.datatasks.sources.common.values.times import UNKNOWN
from forebay.system.instants import to_us

NOW = to_us(datetime(2026, 11, 1, tzinfo=UTC))
AT = to_us(datetime(2026, 3, 1, 5, tzinfo=UTC))


def test_what_is_far() -> None:
    year = timedelta(days=365) // timedelta(microseconds=1)
    times = [UNKNOWN, -1, 0, year - 1, year, AT, NOW, NOW + 10 * year, NOW + 10 * year + 1]
    far = are_far(np.array(times), NOW)
    assert far.tolist() == [False, True, True, True, False, False, False, False, True]
    near = timedelta(microseconds=1)
    assert are_far(np.array([NOW, NOW + 2]), NOW, near).tolist() == [False, True]


@pytest.mark.parametrize(
    ("value", "stored", "read", "fits"),
    [
        (AT // 1000, "int", "milliseconds", "seconds"),
        (AT * 1000, "int", "milliseconds", "microseconds"),
        (AT * 10**3, "timestamp[us, tz=UTC]", "microseconds", "nanoseconds"),
        (AT // 10**6, "timestamp[us]", "microseconds", "seconds"),
        (AT // 10**6, "timestamp[ns]", "nanoseconds", "milliseconds"),
        (AT * 10**3, "timestamp[s]", "seconds", "milliseconds"),
    ],
)
def test_the_unit_that_fits_is_named(value: int, stored: str, read: str, fits: str) -> None:
    assert are_far(np.array([value]), NOW).all()
    words = far_words(value, NOW, stored)
    assert f", read as {read}; as {fits} it would be 2026-03-01 0" in words


@pytest.mark.parametrize("value", [0, -1, -1000, -1_000_000])
def test_no_time(value: int) -> None:
    assert far_words(value, NOW).endswith(": 0 or -1 in place of a time")


def test_what_no_unit_explains() -> None:
    assert far_words(-(10**15), NOW) == "1938-04-24 22:13:20+00:00"
    last = to_us(datetime.max.replace(tzinfo=UTC))
    assert far_words(last, NOW, "timestamp[ms]").startswith("after the year 9999, read as millisec")


def test_a_time_of_no_year_is_shown() -> None:
    """`preview` ended with an OverflowError of Python."""
    assert shown_time(None) is None
    assert shown_time(AT) == datetime(2026, 3, 1, 5, tzinfo=UTC)
    assert shown_time(AT * 1000) == f"{AT * 1000} microseconds after 1970"
