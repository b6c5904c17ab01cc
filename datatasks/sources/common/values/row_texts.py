"""Rows as people see them in dead letters: JSON, with the beginnings of what is long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

_VALUE_BYTES_MAX = 500
_ITEMS_MAX = 50
_TEXT_MAX = 4000
_WRITTEN_MAX = 2000
_MORE = "…"


def row_texts(batch: pa.RecordBatch, rows: Sequence[int]) -> list[str | None]:
    """Some rows of a batch as JSON objects; None where they cannot be shown."""
    if not rows:
        return []
    if not batch.num_columns:
        return ["{}"] * len(rows)
    try:
        some = batch.take(pa.array(rows, pa.int64()))
    except (pa.ArrowException, MemoryError):
        return [None] * len(rows)
    columns = [_texts(column) for column in some.columns]
    names = batch.schema.names
    return [_text(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def written_text(value: bytes | None) -> str | None:
    """What did not decode, as JSON: itself where it is JSON, else a text of it."""
    if value is None:
        return None
    text = value[:_WRITTEN_MAX].decode(errors="replace")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return text


def _texts(column: pa.Array) -> list[Any]:
    try:
        return _values(_beginnings(column))
    except (pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        # Instants of no year, texts of lists that are no UTF-8.
        return [f"(not shown: {error})"[:_VALUE_BYTES_MAX]] * len(column)


def _beginnings(column: pa.Array) -> pa.Array:
    if pat.is_string(column.type) or pat.is_large_string(column.type):
        return pc.binary_slice(column.cast(pa.large_binary()), 0, _VALUE_BYTES_MAX + 1)
    if pat.is_list(column.type) or pat.is_large_list(column.type):
        return pc.list_slice(column, 0, _ITEMS_MAX + 1)
    return column


def _values(column: pa.Array) -> list[Any]:
    if not pat.is_large_binary(column.type):
        return [_shown(each) for each in column.to_pylist()]
    texts = (None if each is None else each.decode(errors="replace") for each in column.to_pylist())
    return [_shown(each) for each in texts]


def _shown(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    if isinstance(value, str) and len(value) > _VALUE_BYTES_MAX:
        return value[:_VALUE_BYTES_MAX] + _MORE
    if isinstance(value, list):
        more = [_MORE] if len(value) > _ITEMS_MAX else []
        return [_shown(each) for each in value[:_ITEMS_MAX]] + more
    return value


def _text(row: dict[str, Any]) -> str:
    text = json.dumps(row, default=str, ensure_ascii=False)
    if len(text) <= _TEXT_MAX:
        return text
    return json.dumps(text[:_TEXT_MAX] + _MORE, ensure_ascii=False)
