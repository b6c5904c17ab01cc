"""Times of rows: when they happened, how long the stream waited, when a label was known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.mixture.features.values import INT_NULL, MICROSECONDS, Ints, Mask, null_as_null

Seconds = npt.NDArray[np.float32]


def instants(values: pa.Array) -> Ints:
    """Timestamps as microseconds since 1970 UTC; the smallest int64 where there is none."""
    known = null_as_null(values, ColumnType.TIMESTAMP)
    return np.asarray(known.fill_null(INT_NULL).to_numpy(zero_copy_only=False), np.int64)


def unknown(times: Ints) -> Mask:
    return np.equal(times, INT_NULL)


def seconds_between(first: Ints, last: Ints) -> Seconds:
    """From one time to the other, never below 0; NaN where one of them is unknown.

    A row may be published before its event, such as a departure planned for later. Its wait is then
    0 seconds.
    """
    # As doubles: for extreme instants in the data, an int64 difference would overflow.
    passed = np.maximum(np.subtract(last, first, dtype=np.float64), 0) / MICROSECONDS
    return np.where(unknown(first) | unknown(last), np.nan, passed).astype(np.float32)
