"""Event ids: the Fingerprint64 of the texts of an event's identity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from forebay.config.sources import ColumnType
from forebay.mixture.features.arrow_columns import ColumnTable
from forebay.mixture.features.feature_rows import id_rows
from forebay.mixture.features.values import Ints, texts
from forebay.mixture.kernels import codes
from forebay.mixture.kernels.library import kernels


def event_ids(columns: Sequence[tuple[pa.Array, ColumnType]]) -> pa.Array:
    """Fingerprint64 of the texts of several columns joined with U+001F, as int64[N].

    A null part is empty.

    Raises:
        DataError: where a column is damaged, or stored as kernels cannot read it.
    """
    read = [_readable(values, kind) for values, kind in columns]
    names = [str(place) for place in range(len(read))]
    batch = pa.RecordBatch.from_arrays([values for values, _ in read], names=names)
    table = ColumnTable([(name, kind) for name, (_, kind) in zip(names, read, strict=True)])
    parts = np.arange(len(read), dtype=np.int64)
    plan: Ints = np.zeros((1, codes.PLAN_WIDTH), np.int64)
    plan[0, codes.METHOD], plan[0, codes.COUNT] = codes.IDENTITY, len(parts)
    plan[0, codes.TABLE] = parts.ctypes.data
    entries = kernels()
    found, _ = id_rows(entries, table.views(entries, batch), plan)
    return found


def _readable(values: pa.Array, kind: ColumnType) -> tuple[pa.Array, ColumnType]:
    """A float's text is Python's to make: kernels have none."""
    if kind is ColumnType.FLOAT:
        return texts(values, kind), ColumnType.STRING
    return values, kind
