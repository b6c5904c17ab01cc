"""Times of rows: when they happened, how long the stream waited, whether a label was known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.sources import ColumnType
from forebay.mixture.features.values import INT_NULL, MICROSECONDS, Ints, Mask, null_as_null

Seconds = npt.NDArray[np.float32]


def instants(values: pa.Array) -> Ints:
    """Timestamps as microseconds since 1970 UTC; the smallest int64 where there is no time."""
    known = null_as_null(values, ColumnType.TIMESTAMP)
    return np.asarray(known.fill_null(INT_NULL).to_numpy(zero_copy_only=False), np.int64)


def unknown(times: Ints) -> Mask:
    """Where there is no time."""
    return np.equal(times, INT_NULL)


def seconds_between(first: Ints, last: Ints) -> Seconds:
    """From one time to the other, never below 0; NaN where one of them is not known.

    A row may be published before its event: a departure that is planned for later. It has waited
    0 seconds then.
    """
    # As doubles: of instants that data may claim, a difference of int64 turns its sign.
    passed = np.maximum(np.subtract(last, first, dtype=np.float64), 0) / MICROSECONDS
    return np.where(unknown(first) | unknown(last), np.nan, passed).astype(np.float32)


def nothing(rows: int) -> Seconds:
    """So many rows of which it is not known."""
    return np.full(rows, np.nan, np.float32)
