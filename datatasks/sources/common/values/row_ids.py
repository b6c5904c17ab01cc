"""Row ids: what proves which rows a model has seen. Defined by storage, not by reading order.

`splitmix64(fingerprint64(path) + row)`: any tool that knows a row's file and number can
recompute it (docs/internals/guarantees.md). All arithmetic wraps at 64 bits.
"""

from __future__ import annotations

from typing import Any

import farmhash
import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_BLOCK = 8192


def fingerprint64(text: str) -> int:
    """FarmHash Fingerprint64 of the UTF-8 text, in [0, 2^64)."""
    return int(farmhash.fingerprint64(text))


def splitmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64, for each value. Some at a time, which stay in a core's cache."""
    found = np.empty(len(values), np.uint64)
    scratch = np.empty(min(len(values), _BLOCK), np.uint64)
    for first in range(0, len(values), _BLOCK):
        mixed = found[first : first + _BLOCK]
        shifted = scratch[: len(mixed)]
        np.add(values[first : first + _BLOCK], _GOLDEN, out=mixed)
        for shift, factor in ((_SHIFT_1, _MIX_1), (_SHIFT_2, _MIX_2)):
            np.bitwise_xor(mixed, np.right_shift(mixed, shift, out=shifted), out=mixed)
            np.multiply(mixed, factor, out=mixed)
        np.bitwise_xor(mixed, np.right_shift(mixed, _SHIFT_3, out=shifted), out=mixed)
    return found


def row_ids(path: str, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """Ids of row numbers of one file, or of offsets of one partition."""
    base = np.array(fingerprint64(path), np.uint64)
    return splitmix64(rows.astype(np.uint64, copy=False) + base).view(np.int64)
