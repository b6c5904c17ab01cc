"""Instants as microseconds, and which span each belongs to, against plain datetimes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.base import parse_instant
from forebay.config.specs.sources import ColumnType
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.values.casting import odd_values
from forebay.datatasks.sources.common.values.far_times import are_far, far_words, shown_time
from forebay.datatasks.sources.common.values.times import (
    UNKNOWN,
    Spans,
    falls,
    hours_within,
    is_time,
    times_of,
)
from forebay.system.instants import to_us

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3_600_000_000
MOMENTS = st.integers(-20, 60)


def test_days_and_dictionaries() -> None:
    days = pa.array([date(1970, 1, 2), None])
    instants = days.cast(pa.timestamp("ns")).dictionary_encode()
    texts = pa.array(["1970-01-02", None]).dictionary_encode()
    for stored in (days, days.cast(pa.date64()), texts, instants):
        assert times_of(stored).tolist() == [24 * HOUR, UNKNOWN]


def test_what_is_a_time() -> None:
    for stored in (pa.timestamp("s"), pa.date32(), pa.dictionary(pa.int8(), pa.timestamp("us"))):
        assert is_time(stored)
    for stored in (pa.string(), pa.int64(), pa.dictionary(pa.int8(), pa.string())):
        assert not is_time(stored)


DAYS = st.sampled_from(
    [
        *("2026-03-01", "2024-02-29", "2026-02-29", "20260301", "2026-W09-7", "2026-3-1"),
        *("0000-01-01", "0001-01-01", "9999-12-31", "1704010100000"),
    ]
)
CLOCKS = st.sampled_from(
    ["", "T07", " 07:30", "T0730", "T07:30:59", "T073059", "t07:00", "T24:00", "T07:00:60", "x07"]
)
FRACTIONS = st.sampled_from(["", ".5", ",5", ".123456", ".123456789", "."])
ZONES = st.sampled_from(["", "Z", "z", "+01", "-0130", "+01:30", " +01:00", "+01:00:30", " UTC"])
TEXTS = st.builds("".join, st.tuples(DAYS, CLOCKS, FRACTIONS, ZONES)) | st.text(max_size=9)


def defined(text: str) -> int | None:
    try:
        return to_us(parse_instant(text))
    except ValueError:
        return None


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_are_read_by_one_definition(texts: list[str]) -> None:
    """A JSON message, and a text column of a file: the same text is the same time, or none."""
    wanted = [defined(text) for text in texts]
    array = pa.array([*texts, None], pa.large_string())
    assert odd_values(array, ColumnType.TIMESTAMP).tolist() == [
        *(each is None for each in wanted),
        False,
    ]
    if None in wanted:
        with pytest.raises(pa.ArrowInvalid):
            times_of(array)
    else:
        assert times_of(array).tolist() == [*wanted, UNKNOWN]


def test_bytes_that_are_no_text_are_no_time() -> None:
    """As some formats let them be: that alone must not end the reading of their neighbours."""
    array = pa.array([b"2026-03-01", b"2026-0\xb6-01", b"2026-W09-7"]).view(pa.string())
    assert odd_values(array, ColumnType.TIMESTAMP).tolist() == [False, True, False]


def instant(hours: int, microseconds: int = 0) -> datetime:
    return EPOCH + timedelta(hours=hours, microseconds=microseconds)


@st.composite
def spans(draw: st.DrawFn) -> list[Interval]:
    cuts = sorted(draw(st.sets(st.integers(0, 40), max_size=8)))
    pairs = list(pairwise(cuts))
    kept = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return [
        Interval(instant(low), instant(high))
        for (low, high), keep in zip(pairs, kept, strict=True)
        if keep
    ]


@given(spans(), st.lists(st.tuples(MOMENTS, st.sampled_from([-1, 0, 1])), min_size=1))
def test_each_time_has_the_span_that_holds_it(
    given_spans: list[Interval], moments: list[tuple[int, int]]
) -> None:
    found = Spans(given_spans)
    times = [instant(*moment) for moment in moments]
    wanted = [
        next((n for n, span in enumerate(given_spans) if span.start <= time < span.end), -1)
        for time in times
    ]
    index = found.index(np.array([to_us(time) for time in times]))
    assert (index.tolist(), len(found), index.dtype) == (wanted, len(given_spans), np.int32)


@given(spans(), st.lists(st.tuples(MOMENTS, st.integers(0, 30)), min_size=1))
def test_a_span_overlaps_what_it_shares_an_instant_with(
    given_spans: list[Interval], ranges: list[tuple[int, int]]
) -> None:
    pairs = [(instant(low), instant(low + length)) for low, length in ranges]
    wanted = [
        any(span.start <= high and low < span.end for span in given_spans) for low, high in pairs
    ]
    low, high = (np.array([to_us(pair[side]) for pair in pairs]) for side in (0, 1))
    assert Spans(given_spans).overlaps(low, high).tolist() == wanted


def test_hours_are_counted_from_the_start_of_the_span_and_stay_inside() -> None:
    times = np.array([-5, 0, HOUR - 1, HOUR, 3 * HOUR - 1, 3 * HOUR, 9 * HOUR])
    assert hours_within(times, 0, 3 * HOUR).tolist() == [0, 0, 0, 1, 2, 2, 2]
    two = Spans([Interval(instant(0), instant(2)), Interval(instant(4), instant(9))])
    found = two.hours(np.array([0, 1, 1]), np.array([HOUR, 4 * HOUR, 7 * HOUR + 1]))
    assert found.tolist() == [1, 0, 3]


@given(st.lists(st.integers(-5, 4 * HOUR), max_size=9), st.integers(-3, 3).map(HOUR.__mul__))
def test_hours_of_one_hour_are_those_of_each_row(values: list[int], start: int) -> None:
    """Where all rows are of one hour none is divided."""
    found = hours_within(np.array(values, np.int64) + start, start, start + 3 * HOUR)
    assert found.dtype == np.int32
    assert found.tolist() == [max(0, min(value, 3 * HOUR - 1)) // HOUR for value in values]


@given(st.lists(st.integers(0, 3), max_size=6))
def test_hours_fall_where_one_is_before_the_one_before_it(hours: list[int]) -> None:
    assert falls(np.array(hours, np.int32)) == (sorted(hours) != hours)


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
