"""Instants with any number of microseconds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forebay.system.instants import from_us, shown_instant, to_us

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("instant", [FIRST, LAST, datetime(2026, 3, 1, 7, 0, 0, 1, UTC)])
def test_an_instant_of_a_calendar_is_itself(instant: datetime) -> None:
    assert from_us(to_us(instant)) == shown_instant(to_us(instant)) == instant


@pytest.mark.parametrize(
    ("value", "shown"),
    [(to_us(LAST) + 1, LAST), (2**63 - 1, LAST), (to_us(FIRST) - 1, FIRST), (-(2**80), FIRST)],
)
def test_one_of_no_year_is_the_nearest(value: int, shown: datetime) -> None:
    assert shown_instant(value) == shown
