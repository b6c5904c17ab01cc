"""Numbers of columns, and the rows of floats that are computed from them."""

from __future__ import annotations

import numpy as np

from forebay.mixture.kernels import codes
from forebay.mixture.kernels.columns import INT_NULL, is_null, load_int
from forebay.mixture.kernels.memory import (
    bits_of_f64,
    f64_of_bits,
    inlined,
    kernel,
    load_f32,
    load_f64,
    load_i64,
    store_f32,
    store_f64,
    store_i64,
)

_TINY = float(np.finfo(np.float64).tiny)
_LARGEST = float(np.finfo(np.float64).max)
_NAN = float("nan")
_MICROSECONDS, _HOUR, _DAY = 1_000_000, 3_600_000_000, 86_400_000_000
_FIRST_WEEKDAY = 3  # 1970-01-01 was a Thursday; Monday is 0
_LINE_FLOATS = 16
_SINGLE, _DOUBLE = 32, 64
_SCALING_WIDTH = 3  # mean, scale, what stands for null

# Of FreeBSD's s_log1p.c.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LG1, _LG2 = 6.666666666666735130e-01, 3.999999999940941908e-01
_LG3, _LG4 = 2.857142874366239149e-01, 2.222219843214978396e-01
_LG5, _LG6 = 1.818357216161805012e-01, 1.531383769920937332e-01
_LG7 = 1.479819860511658591e-01


@kernel
def time_part(value: int, part: int) -> int:
    """Hour or weekday in UTC; null stays null."""
    if part == codes.NO_PART or value == INT_NULL:
        return value
    if part == codes.HOUR_PART:
        return value // _HOUR % 24
    return (value // _DAY + _FIRST_WEEKDAY) % 7


@kernel
def _read_floats(view: int, first: int, count: int, target: int) -> int:
    values, code = load_i64(view, codes.VALUES), load_i64(view, codes.CODE)
    odd = 0
    if code == codes.FLOAT32:
        start = values + 4 * (load_i64(view, codes.START) + first)
        for place in range(count):
            value: float = np.float64(load_f32(start, place))
            odd += 0 if abs(value) <= _LARGEST else 1
            store_f64(target, place, 0.0 if abs(value) < _TINY else value)
    else:
        start = values + 8 * (load_i64(view, codes.START) + first)
        for place in range(count):
            value = load_f64(start, place)
            odd += 0 if abs(value) <= _LARGEST else 1
            store_f64(target, place, 0.0 if abs(value) < _TINY else value)
    return odd


@kernel
def _read_ints(view: int, part: int, first: int, count: int, target: int) -> None:
    values, code = load_i64(view, codes.VALUES), load_i64(view, codes.CODE)
    start = load_i64(view, codes.START) + first
    unit = 1.0
    if code == codes.TIMESTAMP and part == codes.NO_PART:
        unit = float(_MICROSECONDS)
    for place in range(count):
        value = time_part(load_int(code, values, start + place), part)
        store_f64(target, place, _NAN if value == INT_NULL else float(value) / unit)


@kernel
def read_numbers(view: int, part: int, first: int, count: int, target: int) -> int:
    """Write values as doubles, NaN where they are null; returns > 0 if others may not be finite."""
    code, odd = load_i64(view, codes.CODE), 0
    if code == codes.FLOAT32 or code == codes.FLOAT64:
        odd = _read_floats(view, first, count, target)
    else:
        _read_ints(view, part, first, count, target)
    valid = load_i64(view, codes.VALID)
    if valid != 0:
        start = load_i64(view, codes.START) + first
        for place in range(count):
            if is_null(valid, start + place):
                store_f64(target, place, _NAN)
    return odd


@inlined
def log1p(value: float) -> float:
    """log(1 + value) for values from 0 on, to the last bit but one, without branches or calls.

    The reduction and the series are those of FreeBSD's s_log1p.c.
    """
    u = 1.0 + value
    one = u - value
    lost = (1.0 - one) + (value - (u - one))
    bits = bits_of_f64(u) + 0x00095F6200000000  # so that the rest is from sqrt(1/2) to sqrt(2)
    power = f64_of_bits((bits >> 52) | 0x4330000000000000) - 4503599627371519.0
    f = f64_of_bits((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E00000000) - 1.0
    half, s = 0.5 * f * f, f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (_LG2 + w * (_LG4 + w * _LG6))
    odd = z * (_LG1 + w * (_LG3 + w * (_LG5 + w * _LG7)))
    low = power * _LN2_LOW + lost / u
    found = s * (half + (even + odd)) + low - half + f + power * _LN2_HIGH
    return found if value <= _LARGEST else value


@kernel
def _scale_column(plan: int, scaling: int, source: int, count: int, target: int) -> int:
    """Convert doubles to floats; returns how many are beyond `NUMBER_MAX`, or NaN."""
    mean, scale, missing = load_f64(scaling, 0), load_f64(scaling, 1), load_f64(scaling, 2)
    odd = 0
    if load_i64(plan, codes.METHOD) == codes.LOG1P:
        for place in range(count):
            value = load_f64(source, place)
            store_f64(source, place, value if value != value else log1p(max(value, 0.0)))
    for place in range(count):
        value = load_f64(source, place)
        scaled = missing if value != value else (value - mean) / scale
        narrow = np.float32(scaled)
        odd += 0 if abs(narrow) <= codes.NUMBER_MAX else 1
        store_f32(target, place, narrow)
    return odd


@inlined
def _scale_floats(
    bits: int, is_log: int, is_scaled: int, start: int, scaling: int, count: int, target: int
) -> int:
    """`_read_floats` and `_scale_column` in one pass, for values without nulls; returns flags.

    bits: of a stored float. The first three are constants where this is called, and cost nothing
    there; the arithmetic is that of the other two, to the last bit.
    """
    mean, scale, missing = load_f64(scaling, 0), load_f64(scaling, 1), load_f64(scaling, 2)
    not_finite, too_large = 0, 0
    for place in range(count):
        value = np.float64(load_f32(start, place)) if bits == _SINGLE else load_f64(start, place)
        not_finite += 0 if abs(value) <= _LARGEST else 1
        value = 0.0 if abs(value) < _TINY else value
        known = log1p(max(value, 0.0)) if is_log != 0 else value
        scaled = (known - mean) / scale if is_scaled != 0 else known
        narrow = np.float32(missing if value != value else scaled)
        too_large += 0 if abs(narrow) <= codes.NUMBER_MAX else 1
        store_f32(target, place, narrow)
    found = codes.MAYBE_NOT_STORED_FINITE if not_finite != 0 else 0
    return found | (codes.TOO_LARGE if too_large != 0 else 0)


@inlined
def _scale_any_floats(
    bits: int, method: int, start: int, scaling: int, count: int, target: int
) -> int:
    """A separate loop for each case. Subtracting 0 and dividing by 1 changes no bit."""
    is_plain = load_f64(scaling, 0) == 0.0 and load_f64(scaling, 1) == 1.0
    if method == codes.LOG1P:
        if is_plain:
            return _scale_floats(bits, 1, 0, start, scaling, count, target)
        return _scale_floats(bits, 1, 1, start, scaling, count, target)
    if is_plain:
        return _scale_floats(bits, 0, 0, start, scaling, count, target)
    return _scale_floats(bits, 0, 1, start, scaling, count, target)


@kernel
def _encode_column(
    view: int, plan: int, scaling: int, first: int, count: int, target: int, scratch: int
) -> int:
    """One feature of some rows: float32[count] from `target` on, and its flags."""
    code, values = load_i64(view, codes.CODE), load_i64(view, codes.VALUES)
    at, method = load_i64(view, codes.START) + first, load_i64(plan, codes.METHOD)
    if load_i64(view, codes.VALID) == 0:
        if code == codes.FLOAT32:
            return _scale_any_floats(_SINGLE, method, values + 4 * at, scaling, count, target)
        if code == codes.FLOAT64:
            return _scale_any_floats(_DOUBLE, method, values + 8 * at, scaling, count, target)
    found = 0
    if read_numbers(view, load_i64(plan, codes.PART), first, count, scratch) != 0:
        found |= codes.MAYBE_NOT_STORED_FINITE
    if _scale_column(plan, scaling, scratch, count, target) != 0:
        found |= codes.TOO_LARGE
    return found


@kernel
def _join_four(columns: int, count: int, target: int) -> None:
    second, third, fourth = columns + 4 * count, columns + 8 * count, columns + 12 * count
    for row in range(count):
        store_f32(target, 4 * row, load_f32(columns, row))
        store_f32(target, 4 * row + 1, load_f32(second, row))
        store_f32(target, 4 * row + 2, load_f32(third, row))
        store_f32(target, 4 * row + 3, load_f32(fourth, row))


@kernel
def _turn(columns: int, width: int, count: int, target: int, stride: int, fours: int) -> None:
    """float32[width, count] as rows of floats, `stride` bytes apart. fours: room for as many.

    Four at a time: one store per float would take as long as everything else.
    """
    whole = width >> 2
    for number in range(whole):
        _join_four(columns + 16 * count * number, count, fours + 16 * count * number)
    for row in range(count):
        start = target + stride * row
        for number in range(whole):
            source = fours + 16 * (count * number + row)
            low, high = load_i64(source, 0), load_i64(source, 1)
            store_i64(start, 2 * number, low)
            store_i64(start, 2 * number + 1, high)
        for number in range(4 * whole, width):
            store_f32(start, number, load_f32(columns, number * count + row))


@kernel
def _encode_tile(
    views: int, plans: int, scalings: int, begin: int, end: int, width: int,
    first: int, some: int, target: int, flags: int, scratch: int,
) -> None:  # fmt: skip
    """Features `begin` to `end` of `some` rows from `first` on, by column, then transposed.

    Each row of them is written in one go: alternating between as many pages as rows is slow.
    """
    turned = scratch + 8 * some
    for number in range(begin, end):
        plan = plans + 8 * codes.PLAN_WIDTH * number
        view = views + 8 * codes.VIEW_WIDTH * load_i64(plan, codes.VIEW)
        scaling = scalings + 8 * _SCALING_WIDTH * number
        column = turned + 4 * some * (number - begin)
        found = _encode_column(view, plan, scaling, first, some, column, scratch)
        store_i64(flags, number, load_i64(flags, number) | found)
    rows, fours = target + 4 * (first * width + begin), turned + 4 * some * _LINE_FLOATS
    _turn(turned, end - begin, some, rows, 4 * width, fours)


def encode_dense(
    views: int, plans: int, scalings: int, width: int, rows: int, block: int,
    target: int, flags: int, scratch: int,
) -> int:  # fmt: skip
    """Numeric features side by side: float32[rows, width] from `target` on.

    As many features at a time as fill a cache line, for `block` rows: what is written stays in the
    cache until it is complete. scalings: mean, scale and what stands for null, as doubles. flags:
    int64[width]. scratch: double[block] and float32[32, block].
    """
    begin = 0
    while begin < width:
        end, first = min(begin + _LINE_FLOATS, width), 0
        while first < rows:
            some = min(block, rows - first)
            _encode_tile(
                views, plans, scalings, begin, end, width, first, some, target, flags, scratch
            )
            first += some
        begin = end
    return 0
