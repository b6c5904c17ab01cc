"""Instants as whole microseconds since 1970 in UTC: exact, and in the order of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# Of an instant in UTC, on a command line.
INSTANT_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def to_us(instant: datetime) -> int:
    """Microseconds since 1970 of an aware instant."""
    return (instant - EPOCH) // MICROSECOND


_FIRST_US = to_us(datetime.min.replace(tzinfo=UTC))
_LAST_US = to_us(datetime.max.replace(tzinfo=UTC))


def from_us(value: int) -> datetime:
    """The instant of `to_us`."""
    return EPOCH + value * MICROSECOND


def shown_instant(value: int) -> datetime:
    """The instant of any number of microseconds, for people.

    Data may hold one outside of all valid years: then it is the first or last valid instant.
    """
    return from_us(min(max(value, _FIRST_US), _LAST_US))


def now_us() -> int:
    """This moment by the clock of this host."""
    return to_us(datetime.now(UTC))
