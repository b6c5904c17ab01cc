"""What every statement needs: bounded lists of values, and the number of a row just stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import CursorResult

T = TypeVar("T")
# Databases limit how many values one statement may contain.
_VALUES_MAX = 10_000


def batches(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in their order, as many at a time as one statement may contain."""
    left = iter(values)
    while some := list(islice(left, _VALUES_MAX)):
        yield some


def inserted_id(result: CursorResult[Any]) -> int:
    """The number that the database gave to a stored row."""
    key = result.inserted_primary_key
    if key is None:
        raise RuntimeError("a row was stored without a number")
    return int(key[0])
