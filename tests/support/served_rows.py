"""Served rows: every kind of column that there is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("row_id", pa.int64()),
        ("label", pa.float32()),
        ("dense", pa.list_(pa.float32(), 3)),
        ("ids", pa.list_(pa.int64(), 2)),
        ("feature.tags", pa.list_(pa.int64())),
        ("feature.words", pa.list_(pa.int64())),
    ]
)


def batch_of_lists(rows: int, seed: int = 0, longest: int = 4) -> pa.RecordBatch:
    """Rows of `SCHEMA`, with lists of at most so many values."""
    random = np.random.default_rng(seed)

    def floats(count: int) -> pa.Array:
        return pa.array(random.random(count, np.float32))

    def ints(count: int) -> pa.Array:
        return pa.array(random.integers(0, 100, count))

    def lists() -> pa.Array:
        ends = np.cumsum(random.integers(0, longest + 1, rows))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), ints(int(offsets[-1])))

    columns = [
        pa.array(np.arange(rows) + 1000 * seed),
        floats(rows),
        pa.FixedSizeListArray.from_arrays(floats(3 * rows), 3),
        pa.FixedSizeListArray.from_arrays(ints(2 * rows), 2),
        lists(),
        lists(),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
