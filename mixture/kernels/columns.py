"""Columns of an Arrow batch as kernels see them: views made from its C data interface.

https://arrow.apache.org/docs/format/CDataInterface.html has the structure of an array: length,
null_count, offset, n_buffers, n_children, then the addresses of buffers, children and dictionary.
"""

from __future__ import annotations

from forebay.mixture.kernels import codes
from forebay.mixture.kernels.memory import (
    inlined,
    kernel,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i64,
)

_LENGTH, _NULL_COUNT, _OFFSET, _BUFFERS, _CHILDREN, _DICTIONARY = 0, 1, 2, 5, 6, 7
INT_NULL = -(2**63)


@kernel
def _buffer(array: int, place: int) -> int:
    return load_i64(load_i64(array, _BUFFERS), place)


@inlined
def _bit(bits: int, place: int) -> bool:
    return ((load_u8(bits, place >> 3) >> (place & 7)) & 1) != 0


@kernel
def _nulls(array: int) -> int:
    """The address of a validity bitmap; 0 if it marks no value as null.

    Arrow gives columns of files a bitmap if they might have nulls, and mostly there are none.
    """
    bits, count = _buffer(array, 0), load_i64(array, _LENGTH)
    if bits == 0 or load_i64(array, _NULL_COUNT) == 0:
        return 0
    place = load_i64(array, _OFFSET)
    end = place + count
    while place < end:
        if place & 7 == 0 and place + 64 <= end:
            if load_i64(bits + (place >> 3), 0) != -1:
                return bits
            place += 64
        else:
            if not _bit(bits, place):
                return bits
            place += 1
    return 0


@kernel
def _view_values(array: int, view: int, code: int) -> None:
    store_i64(view, codes.CODE, code)
    store_i64(view, codes.START, load_i64(array, _OFFSET))
    store_i64(view, codes.VALID, _nulls(array))
    store_i64(view, codes.VALUES, _buffer(array, 1))
    if code == codes.STRING or code == codes.LARGE_STRING:
        store_i64(view, codes.TEXTS, _buffer(array, 2))
    else:
        store_i64(view, codes.TEXTS, 0)


def view_columns(batch: int, columns: int, count: int, rows: int, views: int) -> int:
    """Fill the table of views. batch: address of its ArrowArray. columns: the table of columns."""
    for number in range(count):
        column = columns + 8 * codes.COLUMN_WIDTH * number
        view = views + 8 * codes.VIEW_WIDTH * number
        array = load_i64(load_i64(batch, _CHILDREN), load_i64(column, codes.COLUMN))
        store_i64(view, codes.ITEMS, rows)
        if load_i64(column, codes.IS_LIST) != 0:
            start, offsets = load_i64(array, _OFFSET), _buffer(array, 1)
            store_i64(view, codes.LIST_START, start)
            store_i64(view, codes.LIST_VALID, _buffer(array, 0))
            store_i64(view, codes.LIST_OFFSETS, offsets)
            items = 0
            if rows > 0:  # the offsets of an empty array may have no memory
                items = load_i32(offsets, start + rows) - load_i32(offsets, start)
            store_i64(view, codes.ITEMS, items)
            array = load_i64(load_i64(array, _CHILDREN), 0)
        index = load_i64(column, codes.INDEX)
        store_i64(view, codes.INDEX_CODE, index)
        if index != 0:
            store_i64(view, codes.INDEX_START, load_i64(array, _OFFSET))
            store_i64(view, codes.INDEX_VALID, _buffer(array, 0))
            store_i64(view, codes.INDICES, _buffer(array, 1))
            array = load_i64(array, _DICTIONARY)
        _view_values(array, view, load_i64(column, codes.ITEM))
    return 0


@inlined
def is_null(bits: int, place: int) -> bool:
    """bits: the address of a validity bitmap; 0 if nothing is null."""
    return bits != 0 and not _bit(bits, place)


@kernel
def load_int(code: int, values: int, place: int) -> int:
    if code == codes.INT64 or code == codes.TIMESTAMP:
        return load_i64(values, place)
    if code == codes.INT32:
        return load_i32(values, place)
    if code == codes.BOOL:
        return 1 if _bit(values, place) else 0
    if code == codes.INT16:
        return load_i16(values, place)
    if code == codes.INT8:
        return load_i8(values, place)
    if code == codes.UINT8:
        return load_u8(values, place)
    if code == codes.UINT16:
        return load_u16(values, place)
    return load_u32(values, place)


@kernel
def value_place(view: int, row: int) -> int:
    """The place of the value of a row, or of an item, from VALUES on; -1 if it is null."""
    place = row
    index_code = load_i64(view, codes.INDEX_CODE)
    if index_code != 0:
        place += load_i64(view, codes.INDEX_START)
        if is_null(load_i64(view, codes.INDEX_VALID), place):
            return -1
        place = load_int(index_code, load_i64(view, codes.INDICES), place)
    place += load_i64(view, codes.START)
    if is_null(load_i64(view, codes.VALID), place):
        return -1
    return place


@kernel
def text_span(view: int, place: int) -> tuple[int, int]:
    offsets, texts = load_i64(view, codes.VALUES), load_i64(view, codes.TEXTS)
    if load_i64(view, codes.CODE) == codes.STRING:
        first = load_i32(offsets, place)
        return texts + first, load_i32(offsets, place + 1) - first
    first = load_i64(offsets, place)
    return texts + first, load_i64(offsets, place + 1) - first
