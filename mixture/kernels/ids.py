"""Ids of values, by hash, boundaries, vocabulary or cross. 0 is null in all of them."""

from __future__ import annotations

from forebay.mixture.kernels import codes
from forebay.mixture.kernels.columns import INT_NULL, is_null, load_int, text_span, value_place
from forebay.mixture.kernels.decimals import (
    MIDDLE,
    SMALL,
    fingerprint64_of_int,
    fingerprint64_of_middle,
    fingerprint64_of_small,
    write_decimal,
)
from forebay.mixture.kernels.fingerprint import fingerprint64, high_product
from forebay.mixture.kernels.memory import (
    inlined,
    kernel,
    load_f64,
    load_i32,
    load_i64,
    load_u8,
    load_u64,
    signed,
    store_i32,
    store_i64,
    store_u8,
    store_u64,
    unsigned,
)
from forebay.mixture.kernels.numbers import read_numbers, time_part

_TRUE, _FALSE = 0x65757274, 0x65736C6166  # b"true" and b"false" as little-endian numbers
_SEPARATOR = 0x1F


@kernel
def text_of(view: int, part: int, row: int, scratch: int) -> tuple[int, int]:
    """Address and length of a value's text, which is empty if the value is null.

    scratch: address of 24 bytes, for the text of a value that is not stored as text.
    """
    place = value_place(view, row)
    if place < 0:
        return scratch, 0
    code = load_i64(view, codes.CODE)
    if code == codes.STRING or code == codes.LARGE_STRING:
        return text_span(view, place)
    value = load_int(code, load_i64(view, codes.VALUES), place)
    if code == codes.BOOL:
        store_i64(scratch, 0, _TRUE if value != 0 else _FALSE)
        return scratch, 4 if value != 0 else 5
    value = time_part(value, part)
    if value == INT_NULL:
        return scratch, 0
    found = write_decimal(value, scratch)
    return scratch + (found >> 5), found & 31


@inlined
def _bucket(fingerprint: int, modulus: int, inverse: int) -> int:
    """1 + fingerprint modulo `modulus`. inverse: as in `codes.py`."""
    size = unsigned(modulus)
    rest = fingerprint - high_product(fingerprint, unsigned(inverse)) * size
    return 1 + signed(rest - size if rest >= size else rest)


@kernel
def _is_int(view: int) -> bool:
    code = load_i64(view, codes.CODE)
    return codes.INT8 <= code <= codes.UINT32 or code == codes.TIMESTAMP


@kernel
def _hash_ids(
    view: int, plan: int, first: int, count: int, target: int, width: int, scratch: int
) -> None:
    part = load_i64(plan, codes.PART)
    modulus, inverse = load_i64(plan, codes.MODULUS), load_i64(plan, codes.INVERSE)
    if _is_int(view):
        _hash_ints(view, part, modulus, inverse, first, count, target, width, scratch)
        return
    for place in range(count):
        text, length = text_of(view, part, first + place, scratch)
        found = _bucket(fingerprint64(text, length), modulus, inverse) if length > 0 else 0
        store_i64(target, place * width, found)


@kernel
def _hash_ints(
    view: int, part: int, modulus: int, inverse: int,
    first: int, count: int, target: int, width: int, scratch: int,
) -> None:  # fmt: skip
    """All as if they were small, many at a time; then again those that are not. scratch: as ids."""
    values, start = load_i64(view, codes.VALUES), load_i64(view, codes.START) + first
    code, valid = load_i64(view, codes.CODE), load_i64(view, codes.VALID)
    buckets = scratch + 24
    if code == codes.INT64 and part == codes.NO_PART:
        plain = values + 8 * start
        for place in range(count):
            fingerprint = fingerprint64_of_small(unsigned(load_i64(plain, place)))
            store_i64(buckets, place, _bucket(fingerprint, modulus, inverse))
    else:
        for place in range(count):
            value = time_part(load_int(code, values, start + place), part)
            fingerprint = fingerprint64_of_small(unsigned(value))
            store_i64(buckets, place, _bucket(fingerprint, modulus, inverse))
    for place in range(count):
        value = time_part(load_int(code, values, start + place), part)
        found = load_i64(buckets, place)
        if not 0 <= value < SMALL:
            found = 0
            if value != INT_NULL:
                fingerprint = fingerprint64_of_int(value, scratch)
                found = _bucket(fingerprint, modulus, inverse)
        store_i64(target, place * width, 0 if is_null(valid, start + place) else found)


@kernel
def _bucketise_ids(
    view: int, plan: int, first: int, count: int, target: int, width: int, scratch: int
) -> int:
    """1 + how many boundaries are not above the value. scratch: double[count]."""
    odd = read_numbers(view, load_i64(plan, codes.PART), first, count, scratch)
    boundaries, size = load_i64(plan, codes.TABLE), load_i64(plan, codes.COUNT)
    for place in range(count):
        value, low, high = load_f64(scratch, place), 0, size
        while low < high:
            middle = (low + high) >> 1
            if load_f64(boundaries, middle) <= value:
                low = middle + 1
            else:
                high = middle
        store_i64(target, place * width, 0 if value != value else 1 + low)
    return odd


@kernel
def _same_bytes(one: int, other: int, length: int) -> bool:
    for place in range(length):
        if load_u8(one, place) != load_u8(other, place):
            return False
    return True


@kernel
def _vocabulary_id(plan: int, text: int, length: int) -> int:
    """2 + the place of a text among the known ones; 1 for any other."""
    fingerprint, mask = fingerprint64(text, length), load_i64(plan, codes.MODULUS) - 1
    places, texts = load_i64(plan, codes.TABLE), load_i64(plan, codes.MORE)
    fingerprints, slots = load_i64(plan, codes.FINGERPRINTS), load_i64(plan, codes.SLOTS)
    slot = signed(fingerprint) & mask
    while True:
        number = load_i64(slots, slot) - 1
        if number < 0:
            return 1
        if load_u64(fingerprints, number) == fingerprint:
            known = load_i64(places, number)
            if load_i64(places, number + 1) - known == length and _same_bytes(
                text, texts + known, length
            ):
                return 2 + number
        slot = (slot + 1) & mask


@kernel
def _vocabulary_ids(
    view: int, plan: int, first: int, count: int, target: int, width: int, scratch: int
) -> None:
    part = load_i64(plan, codes.PART)
    for place in range(count):
        text, length = text_of(view, part, first + place, scratch)
        found = _vocabulary_id(plan, text, length) if length > 0 else 0
        store_i64(target, place * width, found)


@kernel
def _joined(views: int, plan: int, row: int, scratch: int, room: int) -> int:
    """Write the texts of a row's columns with U+001F between them after the first 24 bytes.

    Returns their total length; only what fits into `room` bytes was written.
    """
    parts, length = load_i64(plan, codes.TABLE), 0
    for number in range(load_i64(plan, codes.COUNT)):
        view = views + 8 * codes.VIEW_WIDTH * load_i64(parts, number)
        text, size = text_of(view, codes.NO_PART, row, scratch)
        if number > 0:
            if length < room:
                store_u8(scratch + 24, length, _SEPARATOR)
            length += 1
        if length + size <= room:
            for place in range(size):
                store_u8(scratch + 24, length + place, load_u8(text, place))
        length += size
    return length


@kernel
def _plain_identities(plain: int, count: int, target: int) -> bool:
    """Fingerprints of int64[count] if all are of one size; otherwise False, and no output."""
    smallest, largest = load_i64(plain, 0), load_i64(plain, 0)
    for place in range(count):
        smallest = min(smallest, load_i64(plain, place))
        largest = max(largest, load_i64(plain, place))
    if smallest >= 0 and largest < SMALL:
        for place in range(count):
            store_u64(target, place, fingerprint64_of_small(unsigned(load_i64(plain, place))))
        return True
    if smallest >= SMALL and largest < MIDDLE:
        for place in range(count):
            store_u64(target, place, fingerprint64_of_middle(load_i64(plain, place)))
        return True
    return False


@kernel
def _int_identities(
    view: int, first: int, count: int, target: int, width: int, scratch: int
) -> None:
    """Fingerprints of the texts of whole numbers; for a null, that of the empty text."""
    code, values = load_i64(view, codes.CODE), load_i64(view, codes.VALUES)
    odd = load_i64(view, codes.VALID) | load_i64(view, codes.INDEX_CODE)
    if code == codes.INT64 and odd == 0 and width == 1:
        plain = values + 8 * (load_i64(view, codes.START) + first)
        if _plain_identities(plain, count, target):
            return
    for place in range(count):
        found, at = fingerprint64(scratch, 0), value_place(view, first + place)
        if at >= 0:
            value = load_int(code, values, at)
            if value != INT_NULL:
                found = fingerprint64_of_int(value, scratch)
        store_u64(target, place * width, found)


@kernel
def _cross_ids(
    views: int, plan: int, first: int, count: int, target: int, width: int, scratch: int, room: int
) -> int:
    """Buckets of joined texts, or their fingerprints; returns 0, or the room a text needs."""
    is_identity = load_i64(plan, codes.METHOD) == codes.IDENTITY
    if is_identity and load_i64(plan, codes.COUNT) == 1:
        view = views + 8 * codes.VIEW_WIDTH * load_i64(load_i64(plan, codes.TABLE), 0)
        if _is_int(view):
            _int_identities(view, first, count, target, width, scratch)
            return 0
    modulus, inverse = load_i64(plan, codes.MODULUS), load_i64(plan, codes.INVERSE)
    for place in range(count):
        length = _joined(views, plan, first + place, scratch, room)
        if length > room:
            return length
        fingerprint = fingerprint64(scratch + 24, length)
        if is_identity:
            store_u64(target, place * width, fingerprint)
        else:
            store_i64(target, place * width, _bucket(fingerprint, modulus, inverse))
    return 0


@kernel
def _ids(
    views: int, plan: int, first: int, count: int, target: int, width: int, flag: int, scratch: int
) -> None:
    view = views + 8 * codes.VIEW_WIDTH * load_i64(plan, codes.VIEW)
    method = load_i64(plan, codes.METHOD)
    if method == codes.HASH:
        _hash_ids(view, plan, first, count, target, width, scratch)
    elif method == codes.VOCABULARY:
        _vocabulary_ids(view, plan, first, count, target, width, scratch)
    elif _bucketise_ids(view, plan, first, count, target, width, scratch) != 0:
        store_i64(flag, 0, codes.MAYBE_NOT_STORED_FINITE)


def encode_ids(
    views: int, plans: int, count: int, rows: int, block: int,
    target: int, flags: int, scratch: int, room: int,
) -> int:  # fmt: skip
    """Id features side by side: int64[rows, count] from `target` on.

    flags: int64[count]. scratch: 24 bytes, and as many as `room` and as int64[block]. Returns 0, or
    how much room the joined texts of a row need; then the target is not usable.
    """
    first = 0
    while first < rows:
        some = min(block, rows - first)
        for number in range(count):
            plan = plans + 8 * codes.PLAN_WIDTH * number
            start = target + 8 * (first * count + number)
            if load_i64(plan, codes.METHOD) >= codes.CROSS:
                needed = _cross_ids(views, plan, first, some, start, count, scratch, room)
                if needed > 0:
                    return needed
            else:
                _ids(views, plan, first, some, start, count, flags + 8 * number, scratch)
        first += some
    return 0


@kernel
def _keep_known(view: int, rows: int, target: int, offsets: int) -> int:
    """Move ids that are not 0 together; write where those of each row begin and end."""
    kept, stored = 0, load_i64(view, codes.LIST_OFFSETS)
    start, valid = load_i64(view, codes.LIST_START), load_i64(view, codes.LIST_VALID)
    base = load_i32(stored, start)
    store_i32(offsets, 0, 0)
    for row in range(rows):
        if not is_null(valid, start + row):
            first = load_i32(stored, start + row) - base
            for item in range(first, load_i32(stored, start + row + 1) - base):
                found = load_i64(target, item)
                store_i64(target, kept, found)
                kept += 1 if found != 0 else 0
        store_i32(offsets, row + 1, kept)
    return kept


def encode_list(
    views: int, plan: int, rows: int, block: int,
    target: int, offsets: int, flags: int, scratch: int,
) -> int:  # fmt: skip
    """Ids of the items of lists, without nulls: int64 from `target`, int32[rows + 1] offsets.

    target: room for all items. scratch: as for `encode_ids`. Returns how many ids there are.
    """
    view = views + 8 * codes.VIEW_WIDTH * load_i64(plan, codes.VIEW)
    if rows == 0:
        store_i32(offsets, 0, 0)
        return 0
    base = load_i32(load_i64(view, codes.LIST_OFFSETS), load_i64(view, codes.LIST_START))
    items = load_i64(view, codes.ITEMS)
    first = 0
    while first < items:
        some = min(block, items - first)
        _ids(views, plan, base + first, some, target + 8 * first, 1, flags, scratch)
        first += some
    return _keep_known(view, rows, target, offsets)
