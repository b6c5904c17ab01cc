"""Format `json`: each message is one JSON object, a row. A missing key is a null.

`JsonDecoder._slow` is the definition: plain Python, message by message. Arrow's JSON reader is the
fast path; it sees only messages that both read alike, and when it refuses a group, the definition
decides for each message of it. It must never see a top-level value that is no object: `null`
ends the process inside Arrow (seen with pyarrow 26).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json as paj

from forebay.config.base import parse_instant
from forebay.config.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.common.chunks import without_columns
from forebay.datatasks.sources.formats.decoder import (
    NO_VALUE,
    OUT_OF_MEMORY,
    REASON_MAX,
    USUAL_LIMITS,
    Decoded,
    Decoder,
    MessageLimits,
)
from forebay.system.instants import to_us

_NESTING_MAX = 100
_INT64 = range(-(2**63), 2**63)
_EXACT = 2**53
_SHOWN_MAX = 60
# Arrow's reader keeps a text in memory that it does not check to have got: out of it, the process
# dies.
_FAST_BYTES_MAX = 256 << 10
# What Python takes at most for a character of a text, should one of them be no ASCII, and for each
# sign that begins or parts values.
_CHARACTER_BYTES = 5
# Of so many digits Python makes no float, or no number at all; Arrow makes an infinite one.
_LONG_NUMBER = b"0" * 300
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_SIGN_BYTES = {b",": 48, b":": 104, b"[": 96, b"{": 96}


class JsonDecoder(Decoder):
    """Reads JSON objects. Timestamps are ISO 8601 texts or milliseconds since 1970."""

    one_row: ClassVar[bool] = True

    def __init__(
        self,
        columns: Sequence[str],
        declared: Mapping[str, ColumnType],
        limits: MessageLimits = USUAL_LIMITS,
    ) -> None:
        """Decode `columns`, whose types are in `declared`."""
        super().__init__(columns, declared, limits)
        # Timestamp columns whose last seen values were numbers: only tells the fast path what to
        # try, the outcome does not depend on it.
        self._numbers: frozenset[str] = frozenset()

    def decode(self, values: Sequence[bytes | None]) -> Iterator[Decoded]:
        """See `Decoder.decode`."""
        bad = {n: why for n, value in enumerate(values) if (why := _refusal(value, self.limits))}
        kept = [(n, value) for n, value in enumerate(values) if value is not None and n not in bad]
        batch = self._fast([value for _, value in kept])
        if batch is None:
            batch, reasons = self._slow([value for _, value in kept])
            bad.update({kept[index][0]: reason for index, reason in reasons.items()})
            kept = [pair for index, pair in enumerate(kept) if index not in reasons]
        messages = np.array([n for n, _ in kept], np.int64)
        yield Decoded(batch, messages, np.zeros(len(kept), np.int64), (len(values), 0), bad)

    def described(self, value: bytes) -> dict[str, str]:
        """See `Decoder.described`."""
        try:
            found = _object(value)
        except (ValueError, MemoryError):
            return {}
        return {key: type(each).__name__ for key, each in found.items()}

    def _fast(self, objects: list[bytes]) -> pa.RecordBatch | None:
        """Arrow's reader over all messages at once; None when it refuses one of them."""
        longest = max(map(len, objects), default=0)
        if not longest or not self.columns or longest > _FAST_BYTES_MAX:
            return None
        joined = b"\n".join(objects)
        if longest >= len(_LONG_NUMBER) and _LONG_NUMBER in joined.translate(_AS_ZEROS):
            return None
        stored = [
            (each.name, pa.int64() if each.name in self._numbers else each.type)
            for each in self.schema
        ]
        try:
            joined.decode()  # Arrow does not look into the columns that it leaves out
            table = paj.read_json(
                pa.BufferReader(joined),
                read_options=paj.ReadOptions(use_threads=False, block_size=len(joined) + 1),
                parse_options=paj.ParseOptions(
                    explicit_schema=pa.schema(stored), unexpected_field_behavior="ignore"
                ),
            )
            if table.num_rows != len(objects):
                return None
            arrays = [self._instants(table.column(name), name) for name in self.columns]
        except (pa.ArrowException, UnicodeDecodeError, MemoryError):
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _instants(self, column: pa.ChunkedArray, name: str) -> pa.Array:
        array = column.combine_chunks()
        if name in self._numbers:
            array = array.cast(pa.timestamp("ms", tz="UTC")).cast(self.schema.field(name).type)
        return array

    def _slow(self, objects: Sequence[bytes]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Message by message: the rows that can be read, and why the others cannot."""
        bad: dict[int, str] = {}
        rows: list[list[Any]] = []
        found: dict[str, Any] = {}
        for index, value in enumerate(objects):
            try:
                found = _object(value)
                rows.append([self._value(name, found.get(name)) for name in self.columns])
            except ValueError as error:
                bad[index] = str(error)[:REASON_MAX]
            except MemoryError:
                bad[index] = OUT_OF_MEMORY
        self._numbers = frozenset(
            name
            for name in self.columns
            if self.declared[name] is ColumnType.TIMESTAMP and _is_number(found.get(name))
        )
        if not self.columns:
            return without_columns(len(rows)), bad
        try:
            return self._batch(rows), bad
        except MemoryError:
            return self._batch(self._held(rows, bad, len(objects))), bad

    def _held(self, rows: list[list[Any]], bad: dict[int, str], count: int) -> list[list[Any]]:
        """Rows that memory holds one by one; the others are bad messages too."""
        held = []
        for index, row in zip([n for n in range(count) if n not in bad], rows, strict=True):
            try:
                self._batch([row])
                held.append(row)
            except MemoryError:
                bad[index] = OUT_OF_MEMORY
        return held

    def _batch(self, rows: list[list[Any]]) -> pa.RecordBatch:
        arrays = [
            pa.array([row[index] for row in rows], each.type)
            for index, each in enumerate(self.schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _value(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """A value in the declared type; ValueError where it does not fit."""
        declared = self.declared[name]
        try:
            if value is None:
                return None
            if declared in LIST_ITEMS:
                if not isinstance(value, list):
                    raise TypeError
                read = _SCALARS[LIST_ITEMS[declared]]
                return [None if each is None else read(each) for each in value]
            return _SCALARS[declared](value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"column {name!r} as {declared.value}: {_shown(value)}") from None


def _shown(value: Any) -> str:  # noqa: ANN401 - any JSON value
    try:
        shown = json.dumps(value)
    except RecursionError:
        return "it is nested too deeply"
    return shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "…"


def _decoded_bytes(value: bytes) -> int:
    """What a message may take as objects of Python: an estimate, and more than that as a rule."""
    signs = sum(each * value.count(sign) for sign, each in _SIGN_BYTES.items())
    return _CHARACTER_BYTES * len(value) + signs


def _refusal(value: bytes | None, limits: MessageLimits) -> str:
    """Why a message cannot even be tried; empty when it is one JSON object or plain broken JSON.

    One opening brace first and the only closing one last: whatever lies between, Arrow meets an
    object or an error. All others are parsed here first.
    """
    if value is None:
        return NO_VALUE
    if len(value) * (_CHARACTER_BYTES + max(_SIGN_BYTES.values())) > limits.bytes:
        refusal = limits.stored_refusal(len(value)) or limits.refusal(1, _decoded_bytes(value))
        if refusal:
            return refusal
    text = value.strip()
    if text[:1] == b"{" and text.find(b"}") == len(text) - 1 and text.count(b"[") <= _NESTING_MAX:
        return ""
    try:
        _object(value)
    except ValueError as error:
        return str(error)[:REASON_MAX]
    except MemoryError:
        return OUT_OF_MEMORY
    return ""


def _object(value: bytes) -> dict[str, Any]:
    """One JSON object, and nothing behind it; ValueError otherwise."""
    try:
        found = json.loads(value.decode(), strict=False)
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8 text: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"a JSON object is needed, not {type(found).__name__}")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a surrogate pair is no text
    return value


def _int(value: Any) -> int:  # noqa: ANN401
    if not _is_number(value) or value != int(value):
        raise TypeError
    if isinstance(value, float) and abs(value) > _EXACT:
        raise ValueError
    if int(value) not in _INT64:
        raise OverflowError
    return int(value)


def _float(value: Any) -> float:  # noqa: ANN401
    if not _is_number(value):
        raise TypeError
    return float(value)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _timestamp(value: Any) -> int:  # noqa: ANN401
    """Microseconds since 1970."""
    if _is_number(value):
        return _int(_int(value) * 1000)
    return to_us(parse_instant(_text(value)))


_SCALARS: Mapping[ColumnType, Callable[[Any], Any]] = {
    ColumnType.STRING: _text,
    ColumnType.INT: _int,
    ColumnType.FLOAT: _float,
    ColumnType.BOOL: _bool,
    ColumnType.TIMESTAMP: _timestamp,
}
