"""Which values of a column surely do not become the declared type, all of them at once.

A cast names one value and stops. So it is asked about what is left only: values that are not told
here, of which there are few. What is told here does fail: tests hold both against casts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from forebay.config.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.common.times import utc_texts

Mask = npt.NDArray[np.bool_]

_INT64 = np.iinfo(np.int64)
_US_OF = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_DAY_US = 86_400_000_000
_DAY_MS = 86_400_000
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
_TIME = f"{_HOUR}(?::{_SIXTY}(?::{_SIXTY}(?:[.][0-9]{{1,6}})?)?)?"
_INSTANT = f"^{_DATE}[ T]{_TIME}(?:Z|[+-]{_HOUR}(?::?{_SIXTY})?)$"


def odd_values(array: pa.Array, declared: ColumnType) -> Mask:
    """One truth for each value of a column: whether it surely does not fit. Nulls do."""
    if declared in LIST_ITEMS and not pat.is_null(array.type):
        values = pc.list_flatten(array)
        if pat.is_dictionary(values.type):
            values = values.dictionary_decode()
        odd = np.zeros(len(array), np.bool_)
        parents = np.asarray(pc.list_parent_indices(array))
        odd[parents[odd_values(values, LIST_ITEMS[declared])]] = True
        return odd
    if declared is ColumnType.INT:
        return _no_integers(array)
    if declared is ColumnType.TIMESTAMP:
        return _no_instants(array)
    return np.zeros(len(array), np.bool_)


def _no_integers(array: pa.Array) -> Mask:
    if pat.is_uint64(array.type):
        above: Mask = _numbers(array) > _INT64.max
        return above
    if pat.is_floating(array.type):
        values = _numbers(array)
        fits: Mask = (values == np.trunc(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
        return ~fits
    return np.zeros(len(array), np.bool_)


def _no_instants(array: pa.Array) -> Mask:
    if pat.is_timestamp(array.type):
        return _beyond(_numbers(array.cast(pa.int64())), _US_OF[array.type.unit])
    if pat.is_date32(array.type):
        return _beyond(_numbers(array.cast(pa.int32())).astype(np.int64), _DAY_US)
    if pat.is_date64(array.type):
        return _beyond(_numbers(array.cast(pa.int64())) // _DAY_MS, _DAY_US)
    if pat.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    instants = pc.match_substring_regex(utc_texts(array), _INSTANT)
    return ~np.asarray(pc.fill_null(instants, fill_value=True))


def _beyond(values: npt.NDArray[np.int64], factor: int) -> Mask:
    """Whether values times a factor are no int64."""
    return (values > _INT64.max // factor) | (values < -(_INT64.max // factor))


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """Values, with 0 for nulls."""
    if pat.is_float16(array.type):
        array = array.cast(pa.float32())
    return np.asarray(pc.fill_null(array, pa.scalar(0, array.type)))
