"""One spelling of durations and instants, and the limits of each form."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.base import duration_words, format_duration, parse_duration, parse_instant

CENTURY = 36_525  # days


@given(st.integers(0, CENTURY * 86_400))
def test_a_duration_is_written_as_it_is_read(seconds: int) -> None:
    span = timedelta(seconds=seconds)
    text = format_duration(span)
    assert parse_duration(text) == span
    units = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    largest = next(unit for unit, size in units.items() if seconds % size == 0) if seconds else "s"
    assert text == f"{seconds // units[largest]}{largest}"


@pytest.mark.parametrize("value", [1, False, "1 d", "d", "-1d", "1.5h", "0", None, "1w", "1d1h"])
def test_what_is_no_duration(value: Any) -> None:
    with pytest.raises(ValueError, match="a duration is a number and a unit"):
        parse_duration(value)


def test_a_hundred_years_are_the_longest() -> None:
    assert parse_duration("24h") == parse_duration(timedelta(days=1)) == timedelta(days=1)
    assert parse_duration(0) == timedelta(0)
    assert parse_duration(f"{CENTURY}d") == timedelta(days=CENTURY)
    with pytest.raises(ValueError, match="too long: at most 36525d"):
        parse_duration(f"{CENTURY * 24 + 1}h")


@pytest.mark.parametrize(
    "value",
    [
        *("2026-03-01", "2026-03-01T00:00:00", "2026-03-01T00:00:00Z", "2026-03-01T02:00:00+02:00"),
        date(2026, 3, 1),
        datetime(2026, 3, 1),  # noqa: DTZ001 - what YAML gives for a time without a zone
        datetime(2026, 3, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_instants_are_utc(value: Any) -> None:
    found = parse_instant(value)
    assert (found, found.utcoffset()) == (datetime(2026, 3, 1, tzinfo=UTC), timedelta(0))


@pytest.mark.parametrize("value", ["soon", "", "1704010100000", 20260301, None, 1.5, True])
def test_what_is_no_instant(value: Any) -> None:
    with pytest.raises(ValueError, match="write a time as"):
        parse_instant(value)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0, "0 s"), (1e-6, "0.000001 s"), (863_999.9, "10 days"), (59.6, "1 min")),
        *((75, "1 min 15 s"), (5_400, "1 h 30 min")),
        *((3_601, "1 h"), (93_784, "1 d 2 h"), (20.5 * 86_400, "20 days"), (2e9, "23,148 days")),
    ],
)
def test_durations_for_people(seconds: float, words: str) -> None:
    assert duration_words(timedelta(seconds=seconds)) == words
