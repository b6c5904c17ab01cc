"""Data tasks as rows of an Arrow table: how planning holds millions of them."""

from __future__ import annotations

import pyarrow as pa

ROW_RANGE_TYPE = pa.struct(
    [
        ("path", pa.string()),
        ("first", pa.int64()),
        ("end", pa.int64()),
        ("rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("version", pa.string()),
    ]
)
# One row per data task. `span` is the index of the interval that was asked for; `rows` is null
# when only reading can tell; `cut` says that the ranges hold rows outside the span too.
TASK_SCHEMA = pa.schema(
    [
        ("span", pa.int32()),
        ("hour", pa.int32()),
        ("partition", pa.string()),
        ("ranges", pa.list_(ROW_RANGE_TYPE)),
        ("rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("cut", pa.bool_()),
    ]
)
