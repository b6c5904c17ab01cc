"""FarmHash Fingerprint64 of texts: once for each distinct value, never once for each row."""

from __future__ import annotations

from collections.abc import Sequence

import farmhash
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.sources import ColumnType
from forebay.mixture.features.values import TEXT_SEPARATOR, Ints, null_mask, texts

Fingerprints = npt.NDArray[np.uint64]


def fingerprints(values: pa.Array) -> Fingerprints:
    """Fingerprint64 of each text of a string array without nulls."""
    return np.fromiter(map(farmhash.fingerprint64, values.to_pylist()), np.uint64, len(values))


def buckets_of(values: pa.Array, buckets: int) -> Ints:
    """0 for null, else 1 + fingerprint modulo (buckets - 1), for each text of a string array."""
    hashed = fingerprints(values.fill_null("")) % np.uint64(buckets - 1)
    found = hashed.astype(np.int64) + 1
    if values.null_count:
        found[null_mask(values)] = 0
    return found


def joined_texts(columns: Sequence[tuple[pa.Array, ColumnType]]) -> pa.Array:
    """The texts of several columns joined with U+001F, row by row; a null part is empty."""
    parts = [texts(values, kind).fill_null("") for values, kind in columns]
    return pc.binary_join_element_wise(*parts, TEXT_SEPARATOR)


def event_ids(columns: Sequence[tuple[pa.Array, ColumnType]]) -> Ints:
    """Fingerprint64 of the joined texts of an event's identity, viewed as int64."""
    return fingerprints(joined_texts(columns)).view(np.int64)
