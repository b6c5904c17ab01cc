"""FarmHash Fingerprint64 (farmhashna::Hash64) of bytes in memory.

From https://github.com/google/farmhash (src/farmhash.cc). All numbers are uint64 and wrap.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from forebay.mixture.kernels.memory import inlined, kernel, load_u8, load_u32, load_u64, unsigned


def u64(value: int) -> int:
    """A constant; with a plain number beside a uint64, numba would compute in doubles."""
    return cast("int", np.uint64(value))


K0 = u64(0xC3A5C85C97CB3127)
K1 = u64(0xB492B66FBE98F273)
K2 = u64(0x9AE16A3B2F90404F)
_ZERO, _ONE, U2, U3, U8, U9 = (u64(n) for n in (0, 1, 2, 3, 8, 9))
U32, U47, U64 = (u64(n) for n in (32, 47, 64))
LOW8, LOW32 = u64(0xFF), u64(0xFFFFFFFF)
FIRST_SEED, SECOND_SEED = u64(81), u64(113)


@inlined
def _rotate(value: int, by: int) -> int:
    shift = unsigned(by)
    return (value >> shift) | (value << (U64 - shift))


@inlined
def _mix(value: int) -> int:
    return value ^ (value >> U47)


@inlined
def _pair(u: int, v: int, mul: int) -> int:
    a = _mix((u ^ v) * mul)
    return _mix((v ^ a) * mul) * mul


@inlined
def high_product(one: int, other: int) -> int:
    """The upper 64 of the 128 bits of a product, by halves: processors can do several at once.

    The middle needs no more than 64 bits: (2**32 - 1)**2 + 2 * (2**32 - 1) is below 2**64.
    """
    low, high = one & LOW32, one >> U32
    other_low, other_high = other & LOW32, other >> U32
    middle = high * other_low + (low * other_low >> U32)
    rest = low * other_high + (middle & LOW32)
    return high * other_high + (middle >> U32) + (rest >> U32)


@inlined
def of_8_to_16(length: int, first: int, last: int) -> int:
    """first, last: eight bytes each, which may overlap."""
    mul = K2 + unsigned(length) * U2
    a = first + K2
    c = _rotate(last, 37) * mul + a
    d = (_rotate(a, 25) + last) * mul
    return _pair(c, d, mul)


@inlined
def of_4_to_7(length: int, first: int, last: int) -> int:
    """first, last: four bytes each, which may overlap."""
    mul = K2 + unsigned(length) * U2
    return _pair(unsigned(length) + (first << U3), last, mul)


@inlined
def of_1_to_3(length: int, first: int, middle: int, last: int) -> int:
    """first, middle, last: one byte each."""
    y = first + (middle << U8)
    z = unsigned(length) + (last << U2)
    return _mix((y * K2) ^ (z * K0)) * K2


@kernel
def _of_17_to_32(s: int, length: int) -> int:
    mul = K2 + unsigned(length) * U2
    a = load_u64(s, 0) * K1
    b = load_u64(s + 8, 0)
    c = load_u64(s + length - 8, 0) * mul
    d = load_u64(s + length - 16, 0) * K2
    u = _rotate(a + b, 43) + _rotate(c, 30) + d
    return _pair(u, a + _rotate(b + K2, 18) + c, mul)


@kernel
def _of_33_to_64(s: int, length: int) -> int:
    mul = K2 + unsigned(length) * U2
    a = load_u64(s, 0) * K2
    b = load_u64(s + 8, 0)
    c = load_u64(s + length - 8, 0) * mul
    d = load_u64(s + length - 16, 0) * K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _pair(y, a + _rotate(b + K2, 18) + c, mul)
    e = load_u64(s + 16, 0) * mul
    f = load_u64(s + 24, 0)
    g = (y + load_u64(s + length - 32, 0)) * mul
    h = (z + load_u64(s + length - 24, 0)) * mul
    return _pair(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, mul)


@kernel
def _weak(s: int, a: int, b: int) -> tuple[int, int]:
    z = load_u64(s + 24, 0)
    a += load_u64(s, 0)
    b = _rotate(b + a + z, 21)
    c = a
    a += load_u64(s + 8, 0) + load_u64(s + 16, 0)
    return a + z, b + _rotate(a, 44) + c


@kernel
def _of_65_and_more(s: int, length: int) -> int:
    x = FIRST_SEED
    y = FIRST_SEED * K1 + SECOND_SEED
    z = _mix(y * K2 + SECOND_SEED) * K2
    v0 = v1 = w0 = w1 = _ZERO
    x = x * K2 + load_u64(s, 0)
    end = s + ((length - 1) >> 6 << 6)
    last = s + length - 64
    while s != end:
        x = _rotate(x + y + v0 + load_u64(s + 8, 0), 37) * K1
        y = _rotate(y + v1 + load_u64(s + 48, 0), 42) * K1
        x ^= w1
        y += v0 + load_u64(s + 40, 0)
        z = _rotate(z + w0, 33) * K1
        v0, v1 = _weak(s, v1 * K1, x + w0)
        w0, w1 = _weak(s + 32, z + w1, y + load_u64(s + 16, 0))
        z, x = x, z
        s += 64
    mul = K1 + ((z & LOW8) << _ONE)
    w0 += unsigned((length - 1) & 63)
    v0 += w0
    w0 += v0
    x = _rotate(x + y + v0 + load_u64(last + 8, 0), 37) * mul
    y = _rotate(y + v1 + load_u64(last + 48, 0), 42) * mul
    x ^= w1 * U9
    y += v0 * U9 + load_u64(last + 40, 0)
    z = _rotate(z + w0, 33) * mul
    v0, v1 = _weak(last, v1 * mul, x + w0)
    w0, w1 = _weak(last + 32, z + w1, y + load_u64(last + 16, 0))
    z, x = x, z
    return _pair(_pair(v0, w0, mul) + _mix(y) * K0 + z, _pair(v1, w1, mul) + x, mul)


@kernel
def fingerprint64(s: int, length: int) -> int:
    if length > 64:
        return _of_65_and_more(s, length)
    if length > 32:
        return _of_33_to_64(s, length)
    if length > 16:
        return _of_17_to_32(s, length)
    if length >= 8:
        return of_8_to_16(length, load_u64(s, 0), load_u64(s + length - 8, 0))
    if length >= 4:
        return of_4_to_7(length, unsigned(load_u32(s, 0)), unsigned(load_u32(s + length - 4, 0)))
    if length > 0:
        first, middle = unsigned(load_u8(s, 0)), unsigned(load_u8(s, length >> 1))
        return of_1_to_3(length, first, middle, unsigned(load_u8(s, length - 1)))
    return K2
