"""Arrow columns for kernels: validated, then passed by address.

Kernels do not check bounds. So everything that they read is checked here first: Arrow validates the
whole batch (lengths of buffers, offsets, indices, UTF-8), and only layouts that the kernels know
are accepted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.errors import DataError
from forebay.mixture.kernels import codes
from forebay.mixture.kernels.library import Kernels

_INTEGERS = {
    pa.int8(): codes.INT8,
    pa.int16(): codes.INT16,
    pa.int32(): codes.INT32,
    pa.int64(): codes.INT64,
    pa.uint8(): codes.UINT8,
    pa.uint16(): codes.UINT16,
    pa.uint32(): codes.UINT32,
}
_FLOATS = {pa.float32(): codes.FLOAT32, pa.float64(): codes.FLOAT64}
_TEXTS = {pa.string(): codes.STRING, pa.large_string(): codes.LARGE_STRING}
_STORED = {
    ColumnType.INT: _INTEGERS,
    ColumnType.FLOAT: _FLOATS,
    ColumnType.STRING: _TEXTS,
    ColumnType.BOOL: {pa.bool_(): codes.BOOL},
}


@dataclass(frozen=True)
class Views:
    """Where the columns of one batch are; valid as long as this object lives.

    table: int64[columns, VIEW_WIDTH]; its rows are those of `ColumnTable.columns`.
    """

    table: npt.NDArray[np.int64]
    rows: int
    keeps: object

    @property
    def address(self) -> int:
        return self.table.ctypes.data

    def items(self, view: int) -> int:
        return int(self.table[view, codes.ITEMS])


class ColumnTable:
    """The columns that kernels read, in order. Safe for use from several threads."""

    def __init__(self, columns: Sequence[tuple[str, ColumnType]]) -> None:
        self.columns = tuple(columns)
        self._known: tuple[pa.Schema, npt.NDArray[np.int64]] | None = None

    def views(self, kernels: Kernels, batch: pa.RecordBatch) -> Views:
        """Validate a batch and locate its columns.

        Raises:
            DataError: when a column is damaged, or stored in a way that kernels cannot read.
        """
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"a batch of rows is damaged: {error}") from error
        table = self._table(batch.schema)
        views = np.zeros((len(self.columns), codes.VIEW_WIDTH), np.int64)
        _, array = capsules = batch.__arrow_c_array__()
        kernels.view_columns(
            _POINTER(array, b"arrow_array"),
            table.ctypes.data,
            len(self.columns),
            batch.num_rows,
            views.ctypes.data,
        )
        return Views(views, batch.num_rows, capsules)

    def _table(self, schema: pa.Schema) -> npt.NDArray[np.int64]:
        known = self._known
        if known is None or not known[0].equals(schema):
            rows = [_column(schema, name, kind) for name, kind in self.columns]
            table = np.array(rows, np.int64).reshape(-1, codes.COLUMN_WIDTH)
            known = self._known = schema, table
        return known[1]


def _column(schema: pa.Schema, name: str, kind: ColumnType) -> tuple[int, int, int, int]:
    place, stored = schema.get_field_index(name), schema.field(name).type
    is_list = kind in LIST_ITEMS
    item_kind, item = LIST_ITEMS.get(kind, kind), stored
    index = 0
    if is_list and pat.is_list(stored):
        item = stored.value_type
    if pat.is_dictionary(item):
        index, item = _INTEGERS.get(item.index_type, 0), item.value_type
        known = index != 0 and item_kind is ColumnType.STRING
    else:
        known = True
    code = _code(item, item_kind)
    if not known or code == 0 or is_list != pat.is_list(stored):
        raise DataError(f"column {name!r} is stored as {stored}: it cannot be encoded")
    return place, code, index, int(is_list)


def _code(stored: pa.DataType, kind: ColumnType) -> int:
    """The kernels' code for a layout; 0 if they do not know it."""
    if kind is ColumnType.TIMESTAMP:
        return codes.TIMESTAMP if pat.is_timestamp(stored) and stored.unit == "us" else 0
    return _STORED[kind].get(stored, 0)


_POINTER = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER.restype = ctypes.c_void_p
_POINTER.argtypes = [ctypes.py_object, ctypes.c_char_p]
