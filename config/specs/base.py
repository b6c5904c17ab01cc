"""What every declared model shares: frozen, strict about keys, one spelling of time."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from forebay.system.names import shown

_DURATION = re.compile(r"([0-9]{1,20})([smhd])")
_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?(MiB|GiB)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Longer ones are mistakes, and date arithmetic with them would overflow.
_LONGEST = timedelta(days=36_525)


class Spec(BaseModel):
    """Base of every declared model: immutable, unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


def parse_duration(value: object) -> timedelta:
    """Read `90s`, `15m`, `24h` or `7d`; a bare 0 is allowed.

    Raises:
        ValueError: for any other form, or more than a hundred years.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return timedelta(0)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            f"a duration is a number and a unit (30s, 15m, 24h, 7d), not {_said(value)}"
        )
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds > _LONGEST.total_seconds():
        raise ValueError(f"{value!s:.40} is too long: at most {format_duration(_LONGEST)}")
    return timedelta(seconds=seconds)


def format_duration(value: timedelta) -> str:
    """Write a duration as `parse_duration` reads it, in the largest unit that fits."""
    seconds = round(value.total_seconds())
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"


def parse_memory(value: object) -> int:
    """Bytes of `512MiB` or `2GiB`; a number is bytes already.

    Raises:
        ValueError: for any other form.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _MEMORY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"memory is a number and a unit (512MiB, 2GiB), not {_said(value)}")
    return int(Decimal(match[1]) * (2**20 if match[2] == "MiB" else 2**30))


def format_mib(count: int) -> str:
    """Bytes for people, as `parse_memory` reads them but for a rest below 1 MiB: `412 MiB`."""
    return f"{count / 2**20:.0f} MiB"


def duration_words(value: timedelta) -> str:
    """A duration for people: `20 days`, `3 d 4 h`, `5 min 3 s`, `0.4 s`."""
    seconds = value.total_seconds()
    if seconds < 10:
        return f"{Decimal(f'{seconds:.2g}'):f} s"
    whole = round(seconds)
    if whole >= 10 * _SECONDS["d"]:
        return f"{whole // _SECONDS['d']:,} days"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next(place for place, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


_WRITTEN = "write a time as 2026-03-01 or 2026-03-01T07:00:00Z, not {}"
# Well inside datetime's range, so that windows, offsets and time zones never overflow it.
FIRST_INSTANT, END_OF_INSTANTS = datetime(1000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def parse_instant(value: object) -> datetime:
    """Read a date (midnight UTC) or a date and time; without a zone it is UTC.

    Raises:
        ValueError: when the text is neither, or outside the calendar.
    """
    if isinstance(value, datetime):
        try:
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        except OverflowError:
            raise ValueError(f"{value.isoformat()} is outside the calendar in UTC") from None
    if isinstance(value, date):
        return datetime.combine(value, time(), tzinfo=UTC)
    if isinstance(value, str):
        try:
            if value.isdecimal() and len(value) > len("20260301"):
                raise ValueError("milliseconds: Python reads 1704010100000 as a time of 1704")
            instant = datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(_WRITTEN.format(shown(value))) from error
        return parse_instant(instant)
    raise ValueError(_WRITTEN.format(_said(value)))


def _declared_instant(value: object) -> datetime:
    """An instant of a declaration: from the year 1000 to the year 9000."""
    found = parse_instant(value)
    if not FIRST_INSTANT <= found < END_OF_INSTANTS:
        raise ValueError(f"{found.isoformat()} is outside the years 1000 to 9000")
    return found


def _said(value: object) -> str:
    return shown(value) if isinstance(value, str) else f"{value!r:.80}"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": r"^\d+[smhd]$", "examples": ["24h", "15m"]}),
]
Instant = Annotated[
    datetime,
    BeforeValidator(_declared_instant),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-01"]}),
]
MemorySize = Annotated[
    int,
    BeforeValidator(parse_memory),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d+(\.\d+)? ?(MiB|GiB)$", "examples": ["2GiB"]}
    ),
]
