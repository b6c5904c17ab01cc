"""Bytes that stored columns take as plain ones: few large values may stand in many rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

_VALUE_BYTES = 8


def plain_bytes(columns: pa.Table | pa.RecordBatch) -> int:
    """Bytes of all columns in the declared types, about; without dictionaries.

    The columns are validated.
    """
    return sum(
        _array_bytes(chunk)
        for column in columns.columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    )


def has_dictionaries(types: Iterable[pa.DataType]) -> bool:
    """Whether some of these, or the values of lists of these, have a dictionary."""
    return any(
        pat.is_dictionary(each.value_type if pat.is_nested(each) else each) for each in types
    )


def _array_bytes(array: pa.Array) -> int:
    values = _VALUE_BYTES * len(array)
    if pat.is_nested(array.type):
        return values + _array_bytes(array.flatten())
    if not pat.is_dictionary(array.type):
        return max(values, int(array.nbytes))
    return values + _text_bytes(array)


def _text_bytes(array: pa.DictionaryArray) -> int:
    dictionary = array.dictionary
    if not (pat.is_string(dictionary.type) or pat.is_large_string(dictionary.type)):
        return 0
    lengths = pc.binary_length(dictionary).fill_null(0).cast(pa.int64()).to_numpy()
    longest = int(lengths.max(initial=0))
    if longest * len(array) <= dictionary.nbytes:
        return longest * len(array)
    indices = array.indices.drop_null().cast(pa.int64(), safe=False).to_numpy()
    return int(np.bincount(indices, minlength=len(lengths)).astype(np.int64) @ lengths)
