"""Row ids equal their written definition, computed with Python integers."""

from __future__ import annotations

import farmhash
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.values.row_ids import fingerprint64, row_ids

WRAP = 2**64


def plainly(path: str, row: int) -> int:
    x = (farmhash.fingerprint64(path) % WRAP + row) % WRAP
    x = (x + 0x9E3779B97F4A7C15) % WRAP
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % WRAP
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % WRAP
    x ^= x >> 31
    return x - WRAP if x >= WRAP // 2 else x


@given(st.text(min_size=1), st.lists(st.integers(0, 2**62), max_size=20))
def test_row_ids_are_the_definition(path: str, rows: list[int]) -> None:
    found = row_ids(path, np.array(rows, np.int64))
    assert (found.dtype, found.tolist()) == (np.int64, [plainly(path, row) for row in rows])


def test_fingerprints_are_unsigned() -> None:
    assert all(0 <= fingerprint64(str(n)) < WRAP for n in range(100))


def test_rows_beyond_the_first_block_have_their_ids_too() -> None:
    rows = np.arange(20_001)
    found = row_ids("part-0.parquet", rows)
    for row in (0, 8191, 8192, 8193, 16_384, 20_000):
        assert found[row] == plainly("part-0.parquet", row)
    np.testing.assert_array_equal(found[5:], row_ids("part-0.parquet", rows[5:]))
