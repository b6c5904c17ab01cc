"""Windows: text order, and calendars with summer time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.specs.windows import (
    Interval,
    WindowGrid,
    WindowSize,
    first_window_key,
    is_warm_start,
    warm_start_window,
)

DAYS = WindowGrid(WindowSize.DAY)
HOURS = WindowGrid(WindowSize.HOUR)
BERLIN = WindowGrid(WindowSize.DAY, "Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def keys(grid: WindowGrid, first: str, last: str) -> list[str]:
    return [window.key for window in grid.between(first, last)]


def test_days_across_a_year_both_ends_included() -> None:
    assert keys(DAYS, "2020-12-31", "2021-01-01") == ["2020-12-31", "2021-01-01"]
    assert len(keys(DAYS, "2020-01-01", "2020-02-04")) == 35


NO_DAYS = ("", "2020-1-1", "2020-02-30", "20200101", "2020-01-01T05", "now")
NO_HOURS = ("2020-01-01", "2020-01-01T5", "2020-01-01T24", "2020010100")


@pytest.mark.parametrize(
    ("grid", "text"), [*((DAYS, each) for each in NO_DAYS), *((HOURS, each) for each in NO_HOURS)]
)
def test_what_is_no_window(grid: WindowGrid, text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a window|^write '"):
        grid.parse(text)


@pytest.mark.parametrize(
    ("grid", "text", "meant"),
    [
        *((DAYS, "2020-01-05T05", "2020-01-05"), (DAYS, "now", "2026-03-01")),
        (HOURS, "2020-01-05", "2020-01-05T07"),
    ],
)
def test_a_window_of_the_other_size_is_shown_on_its_own_day(
    grid: WindowGrid, text: str, meant: str
) -> None:
    with pytest.raises(ValueError, match=f": write one like {meant}$"):
        grid.parse(text)


def test_the_last_window_is_not_before_the_first() -> None:
    with pytest.raises(ValueError, match="before the first"):
        DAYS.between("2020-01-02", "2020-01-01")


def test_a_date_stands_for_all_its_hours() -> None:
    found = keys(HOURS, "2020-01-01", "2020-01-02")
    assert (found[0], found[-1], len(found)) == ("2020-01-01T00", "2020-01-02T23", 48)


def test_local_days_follow_summer_time() -> None:
    spring, autumn = BERLIN.parse("2026-03-29"), BERLIN.parse("2026-10-25")
    assert (spring.span.hours, autumn.span.hours, spring.start) == (23, 25, at("2026-03-28T23:00"))
    assert BERLIN.after(spring).start == spring.end == at("2026-03-29T22:00")
    assert BERLIN.at(at("2026-03-29T22:00")).key == "2026-03-30"


def test_a_day_without_midnight_starts_where_the_one_before_ends() -> None:
    cairo = WindowGrid(WindowSize.DAY, "Africa/Cairo")  # clocks jump from 00:00 to 01:00
    before, jump = cairo.parse("2026-04-23"), cairo.parse("2026-04-24")
    assert (before.end, cairo.at(jump.start), cairo.after(before)) == (jump.start, jump, jump)


def test_the_warm_start_sorts_before_every_later_window() -> None:
    first = DAYS.parse("2013-06-01")
    warm = warm_start_window(at("2013-01-01"), first)
    assert warm.key == "2013-01-01_2013-06-01" < first.key
    assert (is_warm_start(warm.key), is_warm_start(first.key)) == (True, False)
    assert (first_window_key(warm.key), warm.end) == (first.key, first.start)


def test_shifting_and_clipping() -> None:
    span = Interval(at("2026-03-02"), at("2026-03-03"))
    assert span.shifted_back(timedelta(days=1)) == Interval(at("2026-03-01"), at("2026-03-02"))
    assert span.clipped(None, None) == span
    assert span.clipped(at("2026-03-03"), None) is None
    noon = at("2026-03-02T12:00")
    assert span.clipped(None, noon) == Interval(span.start, noon)
    assert Interval(span.start, span.start + timedelta(minutes=61)).hours == 2


zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo"]
)
instants = st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2035, 1, 1),  # noqa: DTZ001 - same
    timezones=st.just(UTC),
)


@given(zones, st.sampled_from(list(WindowSize)), instants)
def test_windows_tile_time(zone: str, size: WindowSize, instant: datetime) -> None:
    grid = WindowGrid(size, zone)
    window = grid.at(instant)
    assert window.start <= instant < window.end
    assert (grid.parse(window.key), grid.after(window).start) == (window, window.end)
    assert grid.before(window).end == window.start


@given(zones, st.sampled_from(list(WindowSize)), instants, instants)
def test_keys_sort_as_time_does(
    zone: str, size: WindowSize, one: datetime, other: datetime
) -> None:
    grid = WindowGrid(size, zone)
    first, second = grid.at(one), grid.at(other)
    assert (first.key < second.key) == (first.start < second.start)
