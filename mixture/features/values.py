"""One definition of null, text, number and time part of a stored value, on Arrow arrays.

`tensors.py` holds the same definition as TensorFlow operations; a property test compares the two.

- Null is: Arrow null, the empty text, NaN, and the smallest int64 (of an int or a timestamp).
- Text is: the text itself; decimal for int; `true` or `false`; C's `%.17g` for float; decimal
  microseconds since 1970 UTC for a timestamp.
- Number is a double: 1 or 0 for bool, seconds since 1970 UTC for a timestamp. Doubles below
  2.3e-308 are 0: TensorFlow's threads compute without subnormal numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.features import TimePart
from forebay.config.specs.sources import ColumnType

INT_NULL = -(2**63)
FLOAT_FORMAT = "%.17g"
FLOAT_TINY = float(np.finfo(np.float64).tiny)
TEXT_SEPARATOR = "\x1f"
MICROSECONDS = 1_000_000
HOUR = 3_600 * MICROSECONDS
DAY = 24 * HOUR
FIRST_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Seconds = npt.NDArray[np.float32]


def null_mask(values: pa.Array) -> Mask:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)


def null_as_null(values: pa.Array, kind: ColumnType) -> pa.Array:
    """The same values with every kind of null as an Arrow null; timestamps become int64."""
    if kind is ColumnType.BOOL:
        return values
    is_plain = kind is ColumnType.INT and not values.null_count and values.type.equals(pa.int64())
    if is_plain and not (values.to_numpy() == INT_NULL).any():
        return values
    if kind is ColumnType.STRING:
        null = pc.equal(pc.binary_length(values), 0)
    elif kind is ColumnType.FLOAT:
        null = pc.is_nan(values)
    else:
        values = values.cast(pa.int64())
        null = pc.equal(values, INT_NULL)
    if not pc.any(null).as_py():
        return values
    return pc.if_else(null, pa.scalar(None, values.type), values)


def texts(values: pa.Array, kind: ColumnType) -> pa.Array:
    """Each value's text as an Arrow string array; null where the value is null."""
    values = null_as_null(values, kind)
    if kind is ColumnType.STRING:
        return values
    if kind is not ColumnType.FLOAT:
        return values.cast(pa.string())
    written = [None if value is None else FLOAT_FORMAT % value for value in values.to_pylist()]
    return pa.array(written, pa.string())


def numbers(values: pa.Array, kind: ColumnType) -> Floats:
    """Each value as a double; NaN where the value is null."""
    values = null_as_null(values, kind)
    if kind is ColumnType.BOOL:
        values = values.cast(pa.int8())
    # An int64 beyond 2**53 is rounded, as by a TensorFlow cast; Arrow's cast would refuse it.
    plain: Floats = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    if kind is ColumnType.FLOAT:
        plain[np.abs(plain) < FLOAT_TINY] = 0.0
    if kind is ColumnType.TIMESTAMP:
        plain = plain / MICROSECONDS
    if values.null_count:
        plain[null_mask(values)] = np.nan
    return plain


def time_part(values: pa.Array, part: TimePart) -> pa.Array:
    """Hour or weekday in UTC of timestamps, as an int64 array; also correct before 1970."""
    known = null_as_null(values, ColumnType.TIMESTAMP)
    micros = known.fill_null(0).to_numpy(zero_copy_only=False)
    parts = micros // HOUR % 24 if part == "hour" else (micros // DAY + FIRST_WEEKDAY) % 7
    return pa.array(parts, pa.int64(), mask=null_mask(known))


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
