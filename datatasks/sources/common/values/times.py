"""Instants as int64 microseconds since 1970 (UTC), and spans as sorted arrays of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.base import parse_instant
from forebay.config.specs.windows import Interval
from forebay.system.instants import to_us

HOUR_US = 3_600_000_000
UNKNOWN = np.iinfo(np.int64).min  # of a null, and of rows whose time nobody wrote down
_UTC = pa.timestamp("us", tz="UTC")
_ZONE = r"(Z|:.*[+-][0-9]{2}(:?[0-9]{2})?)$"
_DAY = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$"
_FINER = r"([.][0-9]{6})[0-9]+"
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
_TIME = f"{_HOUR}(?::{_SIXTY}(?::{_SIXTY}(?:[.][0-9]{{1,6}})?)?)?"
_INSTANT = f"^{_DATE}[ T]{_TIME}(?:Z|[+-]{_HOUR}(?::?{_SIXTY})?)$"
_BEGINS = "^[0-9]{4}-?[0-9W]"  # as all times do: a million other texts are told quickly
_FIRST = 64  # Arrow reads on after a text that is no time, and takes 2 us for each: try a few first
# Python's calendar is shorter than Arrow's, and any zone may move an instant by a day.
_CALENDAR_US = range(-62_135_510_400_000_000, 253_402_128_000_000_000)
_AT_ITS_ENDS = "^(?:0000|0001-01-01|9999-12-31)"
_IN_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}

Times = npt.NDArray[np.int64]


def is_time(stored: pa.DataType) -> bool:
    """Whether values of a stored type are instants (a zone-less one counts as UTC) or days."""
    if pa.types.is_dictionary(stored):
        return is_time(stored.value_type)
    return bool(pa.types.is_timestamp(stored) or pa.types.is_date(stored))


def times_of(array: pa.Array) -> Times:
    """Microseconds of an array of timestamps, days or ISO 8601 texts; UNKNOWN where null.

    It may be the memory of the array itself, which nobody writes to.

    Raises:
        pyarrow.ArrowInvalid: for a text that is not a time.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("us"))
    if not pa.types.is_timestamp(array.type):
        array = as_utc(array)
    unit = array.type.unit
    if unit == "us" and not array.null_count:
        plain: Times = array.view(pa.int64()).to_numpy()
        return plain
    ticks = array.cast(pa.int64())
    known = np.asarray(ticks.is_valid())
    values = np.asarray(pc.fill_null(ticks, 0)).astype(np.int64, copy=False)
    us = np.floor_divide(values, 1000) if unit == "ns" else values * _IN_MICROSECONDS[unit]
    return np.where(known, us, UNKNOWN)


def as_utc(array: pa.Array) -> pa.Array:
    """ISO 8601 texts as instants: with a zone as written, without one in UTC.

    One definition for all formats: `parse_instant`. Arrow reads what is written in the usual ways.

    Raises:
        pyarrow.ArrowInvalid: for a text that is not a time.
    """
    array = array.cast(pa.string())
    found = usual_instants(array)
    if found is not None:
        return found
    rare = _rare(array)
    try:
        defined = [to_us(parse_instant(each)) for each in array.filter(rare).to_pylist()]
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    usual = pc.if_else(rare, pa.scalar(None, pa.string()), _utc_texts(array)).cast(_UTC)
    return pc.replace_with_mask(usual, rare, pa.array(defined, _UTC))


def usual_instants(array: pa.Array) -> pa.Array | None:
    """As `as_utc` of texts that are all written in the usual ways, with dashes; None of others."""
    for form in (_same, _utc_texts):
        try:
            form(array.slice(0, _FIRST)).cast(_UTC)
            found = form(array).cast(_UTC)
        except pa.ArrowInvalid:
            continue
        ends = pc.min_max(found.cast(pa.int64())).as_py().values()
        if all(each is None or each in _CALENDAR_US for each in ends):
            return found
    return None


def _same(array: pa.Array) -> pa.Array:
    return array


def no_instants(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Which texts are no times. Nulls do not count."""
    array = array.cast(pa.string())
    found = np.asarray(_rare(array)).copy()
    begins = np.asarray(pc.fill_null(pc.match_substring_regex(array, _BEGINS), fill_value=False))
    open_ones = np.flatnonzero(found & begins)
    texts = array.take(pa.array(open_ones)).cast(pa.binary()).to_pylist()
    found[open_ones] = [not _is_instant(each) for each in texts]
    return found


def _is_instant(text: bytes) -> bool:
    """Of a text that may be none: some formats say that any bytes are one."""
    try:
        parse_instant(text.decode())
    except ValueError:
        return False
    return True


def _rare(array: pa.Array) -> pa.Array:
    """Which texts are written in none of the usual ways, if they are times at all."""
    texts = _utc_texts(array)
    usual = pc.match_substring_regex(texts, _INSTANT)
    inside = pc.invert(pc.match_substring_regex(texts, _AT_ITS_ENDS))
    return pc.invert(pc.fill_null(pc.and_(usual, inside), fill_value=True))


def _utc_texts(array: pa.Array) -> pa.Array:
    """Texts with a zone: UTC where none is written, midnight of a day; microseconds at most."""
    text = pc.replace_substring_regex(array, _DAY, r"\1T00:00:00Z")
    text = pc.replace_substring_regex(text, _FINER, r"\1")
    zoned = pc.match_substring_regex(text, _ZONE)
    return pc.if_else(zoned, text, pc.binary_join_element_wise(text, "Z", ""))


class Spans:
    """Disjoint ascending spans of time."""

    def __init__(self, spans: Sequence[Interval]) -> None:
        self.starts = np.array([to_us(span.start) for span in spans], np.int64)
        self.ends = np.array([to_us(span.end) for span in spans], np.int64)

    def __len__(self) -> int:
        return len(self.starts)

    def index(self, times: Times) -> npt.NDArray[np.int32]:
        """The span of each time; -1 outside all of them."""
        if not len(self):
            return np.full(len(times), -1, np.int32)
        found = np.searchsorted(self.starts, times, side="right") - 1
        inside = (found >= 0) & (times < self.ends[np.maximum(found, 0)])
        return np.where(inside, found, -1).astype(np.int32)

    def overlaps(self, low: Times, high: Times) -> npt.NDArray[np.bool_]:
        """Whether any span has an instant in [low, high], for each pair."""
        if not len(self):
            return np.zeros(len(low), np.bool_)
        first = np.searchsorted(self.ends, low, side="right")
        found = first < len(self)
        starts = self.starts[np.minimum(first, len(self) - 1)]
        return np.asarray(found & (starts <= high))

    def hours(self, spans: npt.NDArray[np.integer], times: Times) -> npt.NDArray[np.int32]:
        """Whole hours from each time's span start, kept inside the span."""
        return hours_within(times, self.starts[spans], self.ends[spans])


def hours_of(times: Times, start: int, end: int) -> npt.NDArray[np.int32]:
    """As `hours_within`, where rows of a stream may have any time: 0 for those after the span.

    Where they are, and not their time, says when they came.
    """
    return np.where(times >= end, 0, hours_within(times, start, end)).astype(np.int32)


def outside(times: Times, start: int, end: int) -> npt.NDArray[np.int8] | None:
    """-1 for times before [start, end), 1 for those after it; None where all are in it."""
    found = (times >= end).astype(np.int8) - (times < start).astype(np.int8)
    return found if found.any() else None


def misplaced(times: Times, start: int, end: int) -> npt.NDArray[np.int8] | None:
    """As `outside` of rows in files, where none is late: 1 on either side."""
    found = outside(times, start, end)
    return None if found is None else np.abs(found)


def hours_within(times: Times, start: Times | int, end: Times | int) -> npt.NDArray[np.int32]:
    """Whole hours from `start` to each time, clamped to the span [start, end)."""
    hours = np.clip(times, start, np.asarray(end) - 1)
    hours -= start
    if isinstance(start, int) and len(hours):
        first = int(hours.min()) // HOUR_US
        if first == int(hours.max()) // HOUR_US:  # as most chunks are: no row is divided
            return np.full(len(hours), first, np.int32)
    hours //= HOUR_US
    return hours.astype(np.int32)


def falls(hours: npt.NDArray[np.int32]) -> bool:
    """Whether some hour is before the one of the row before it. Quicker than to make them rise."""
    return bool((hours[1:] < hours[:-1]).any())
