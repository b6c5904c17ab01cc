"""Whole numbers as decimal text, eight digits at a time, and the Fingerprint64 of that text.

Texts of up to 16 characters are hashed in registers and never written.
"""

from __future__ import annotations

from forebay.mixture.kernels.fingerprint import fingerprint64, of_1_to_3, of_4_to_7, of_8_to_16, u64
from forebay.mixture.kernels.memory import (
    inlined,
    kernel,
    signed,
    store_u8,
    store_u64,
    trailing_zeros,
    unsigned,
)

SMALL = 10**8  # numbers below have up to eight digits
MIDDLE = 10**15  # numbers below are exact as doubles, and their texts are hashed in registers
_ZERO, _ONE, _U4, _E8, _E16 = u64(0), u64(1), u64(4), u64(10**8), u64(10**16)
_HUNDRED, _TEN = u64(100), u64(10)
_U3, _U8, _U10, _U16, _U20 = (u64(n) for n in (3, 8, 10, 16, 20))
_U32, _U45, _U56, _U64 = (u64(n) for n in (32, 45, 56, 64))
_E3, _E4, _E5, _E6, _E7 = (u64(10**n) for n in range(3, 8))
_PER_10000, _PER_100, _PER_10 = u64(3518437209), u64(10486), u64(103)  # over 2**45, 2**20, 2**10
_LANES_32, _LANES_16 = u64(0x0000007F0000007F), u64(0x000F000F000F000F)
_ZEROS, _TO_MINUS = u64(0x3030303030303030), u64(ord("0") ^ ord("-"))
_LOW_8, _LOW_32 = u64(0xFF), u64(0xFFFFFFFF)


@inlined
def _digits(value: int) -> int:
    """Eight digits of a number below 10**8, one per byte, the first in the lowest."""
    fours = (value * _PER_10000) >> _U45  # value // 10**4, by a product that vector units have
    fours |= (value - fours * _E4) << _U32
    hundreds = ((fours * _PER_100) >> _U20) & _LANES_32
    pairs = ((fours - hundreds * _HUNDRED) << _U16) | hundreds
    tens = ((pairs * _PER_10) >> _U10) & _LANES_16
    return ((pairs - tens * _TEN) << _U8) | tens


@kernel
def _length(high: int, low: int) -> int:
    """The length of a number of up to 16 digits, given as eight and eight."""
    if high != _ZERO:
        return 16 - (signed(trailing_zeros(high)) >> 3)
    if low != _ZERO:
        return 8 - (signed(trailing_zeros(low)) >> 3)
    return 1


@kernel
def write_decimal(value: int, target: int) -> int:
    """Write a number's text at an address with room for 24 bytes.

    Returns start * 32 + length; `start` bytes after the address.
    """
    size = unsigned(value)
    if value < 0:
        size = _ZERO - size
    top = size // _E16
    rest = size - top * _E16
    high = rest // _E8
    high_digits, low_digits = _digits(high), _digits(rest - high * _E8)
    top_digits = _digits(top)
    store_u64(target, 0, top_digits | _ZEROS)
    store_u64(target, 1, high_digits | _ZEROS)
    store_u64(target, 2, low_digits | _ZEROS)
    if top != _ZERO:
        length = 16 + _length(_ZERO, top_digits)
    else:
        length = _length(high_digits, low_digits)
    if value < 0:
        length += 1
        store_u8(target, 24 - length, 45)
    return (24 - length) * 32 + length


@kernel
def fingerprint64_of_int(value: int, scratch: int) -> int:
    """Fingerprint64 of a number's decimal text. scratch: address of 24 bytes."""
    size = unsigned(value)
    if value < 0:
        size = _ZERO - size
    if size >= _E16 // _TEN:  # with a sign it may have more than 16 characters
        found = write_decimal(value, scratch)
        return fingerprint64(scratch + (found >> 5), found & 31)
    high = size // _E8
    high_digits, low_digits = _digits(high), _digits(size - high * _E8)
    length = _length(high_digits, low_digits)
    first, last = high_digits | _ZEROS, low_digits | _ZEROS
    if value < 0:
        length += 1
        before = unsigned((16 - length) & 7) << _U3  # bits before the sign's byte
        if length > 8:
            first ^= _TO_MINUS << before
        else:
            last ^= _TO_MINUS << before
    if length > 8:
        shift = unsigned(16 - length) << _U3
        return of_8_to_16(length, (first >> shift) | ((last << (_U64 - shift - _U8)) << _U8), last)
    if length == 8:
        return of_8_to_16(length, last, last)
    text = last >> (unsigned(8 - length) << _U3)
    if length >= 4:
        return of_4_to_7(length, text & _LOW_32, last >> _U32)
    middle = (text >> (unsigned(length >> 1) << _U3)) & _LOW_8
    return of_1_to_3(length, text & _LOW_8, middle, last >> _U56)


@inlined
def _reaches(value: int, power: int) -> int:
    return _ONE if value >= power else _ZERO


@inlined
def fingerprint64_of_small(value: int) -> int:
    """The same for a uint64 below `SMALL`, without a branch; meaningless for other numbers.

    Loops over it process several numbers at once if the processor can.
    """
    digits = _digits(value)
    length = _ONE + _reaches(value, _TEN) + _reaches(value, _HUNDRED) + _reaches(value, _E3)
    length += _reaches(value, _E4) + _reaches(value, _E5)
    length += _reaches(value, _E6) + _reaches(value, _E7)
    last = digits | _ZEROS
    text = last >> ((_U8 - length) << _U3)
    of_8 = of_8_to_16(8, last, last)
    of_4 = of_4_to_7(signed(length), text & _LOW_32, last >> _U32)
    middle = (text >> ((length >> _ONE) << _U3)) & _LOW_8
    of_1 = of_1_to_3(signed(length), text & _LOW_8, middle, last >> _U56)
    short = of_4 if length >= _U4 else of_1
    return of_8 if length >= _U8 else short


@inlined
def fingerprint64_of_middle(value: int) -> int:
    """The same from `SMALL` to below `MIDDLE`, without a branch; meaningless for other numbers.

    Like that of small numbers, it is made for loops: whole numbers are divided as doubles, which is
    off by at most one, and then corrected.
    """
    quotient = int(float(value) * 1e-8)
    rest = value - quotient * SMALL
    quotient += (1 if rest >= SMALL else 0) - (1 if rest < 0 else 0)
    high = unsigned(quotient)
    first, last = _digits(high) | _ZEROS, _digits(unsigned(value - quotient * SMALL)) | _ZEROS
    length = _U8 + _ONE + _reaches(high, _TEN) + _reaches(high, _HUNDRED) + _reaches(high, _E3)
    length += _reaches(high, _E4) + _reaches(high, _E5) + _reaches(high, _E6)
    shift = (_U16 - length) << _U3
    text = (first >> shift) | ((last << (_U56 - shift)) << _U8)
    return of_8_to_16(signed(length), text, last)
