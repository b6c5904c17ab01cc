"""Rows of `criteo.py` as a peer encodes them: NumPy arrays of one minibatch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from served import hashed

FLOATS = [f"f{number}" for number in range(13)]
IDS = [f"c{number}" for number in range(26)]
LIST = "history"
BUCKETS = 100_000


def encoded(batch: pa.RecordBatch | pa.Table) -> dict[str, np.ndarray]:
    """label: float32[N]; floats: float32[N, 13]; ids: int32[N, 26]; items of lists, and lengths."""

    def column(name: str) -> pa.Array:
        found = batch.column(name)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    history = column(LIST)
    floats = np.stack([column(name).to_numpy() for name in FLOATS], axis=1)
    ids = np.stack([column(name).to_numpy() for name in IDS], axis=1)
    return {
        "label": column("label").to_numpy().astype(np.float32),
        "floats": np.log1p(floats),
        "ids": hashed(ids, BUCKETS),
        "history": hashed(history.flatten().to_numpy(), BUCKETS),
        "lengths": history.value_lengths().to_numpy(),
    }
