"""Format `json`: each message is one JSON object, a row. A missing key is a null.

msgspec reads each message alone, and makes objects of the wanted columns only. What it refuses is
read by the definition (`json_value`), which says why: an odd message costs its neighbours nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from forebay.config.specs.base import parse_instant
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.common.rows.chunks import without_columns
from forebay.datatasks.sources.common.values.times import as_utc
from forebay.datatasks.sources.formats.decoder import (
    NO_VALUE,
    OUT_OF_MEMORY,
    REASON_MAX,
    Decoded,
    Decoder,
    MessageLimits,
    in_memory,
)
from forebay.system.instants import to_us

DIGITS_MAX = 4300  # of an integer that Python makes of a text
_INT64_RANGE = range(-(2**63), 2**63)
_EXACT = 2**53
_SHOWN_MAX = 60
# What Python takes at most for a character of a text, should one of them be no ASCII, and for each
# sign that begins or parts values.
_CHARACTER_BYTES = 5
_SIGN_BYTES = {b",": 48, b":": 104, b"[": 96, b"{": 96}
_EACH_MAX = _CHARACTER_BYTES + max(_SIGN_BYTES.values())


def refusal(value: bytes, limits: MessageLimits) -> str:
    """Why a message is not looked at; empty for one that is."""
    if len(value) * _EACH_MAX <= limits.bytes:
        return ""
    if reason := limits.stored_refusal(len(value)):
        return reason
    # As objects of Python: an estimate, and more than that as a rule.
    signs = sum(each * value.count(sign) for sign, each in _SIGN_BYTES.items())
    return limits.refusal(1, _CHARACTER_BYTES * len(value) + signs)


def json_object(value: bytes) -> dict[str, Any]:
    """One JSON object, and nothing after it; ValueError otherwise."""
    try:
        found = json.loads(value.decode(), strict=False)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"a JSON object is needed, not {type(found).__name__}")
    return found


def json_value(name: str, value: Any, declared: ColumnType) -> Any:  # noqa: ANN401 - any JSON value
    """A value of column `name` in the declared type; ValueError where it does not fit."""
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a surrogate pair is not text
    return value


def _int(value: Any) -> int:  # noqa: ANN401
    if not _is_number(value) or value != int(value):
        raise TypeError
    if isinstance(value, float) and abs(value) > _EXACT:
        raise ValueError
    if int(value) not in _INT64_RANGE:
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


# msgspec passes over numbers of any length; Python makes none of more digits.
_DIGITS = b"0" * (DIGITS_MAX + 1)
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_READ_AS: Mapping[ColumnType, Any] = {
    ColumnType.STRING: str | None,
    ColumnType.INT: _INT64 | None,
    ColumnType.FLOAT: float | None,
    ColumnType.BOOL: bool | None,
    ColumnType.TIMESTAMP: _INT64 | str | None,
    ColumnType.LIST_STRING: list[str | None] | None,
    ColumnType.LIST_INT: list[_INT64 | None] | None,
    ColumnType.LIST_FLOAT: list[float | None] | None,
}
_REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_Rows = dict[int, Any]


class JsonDecoder(Decoder):
    """Reads JSON objects. Timestamps are ISO 8601 texts or milliseconds since 1970."""

    one_row: ClassVar[bool] = True

    def prepare(self) -> None:
        fields = {f"column_{index}": name for index, name in enumerate(self.columns)}
        wanted = [(field, _READ_AS[self.declared[name]], None) for field, name in fields.items()]
        row = msgspec.defstruct("Row", wanted, rename=fields, gc=False)
        self._decode = msgspec.json.Decoder(row).decode
        self._fields = [attrgetter(field) for field in fields]

    def decode(self, values: Sequence[bytes | None]) -> Iterator[Decoded]:
        bad: dict[int, str] = {}
        fast, defined = self._objects(values, bad)
        batch = in_memory(self._fast_batch, fast, bad)
        numbers = np.array(list(fast), np.int64)
        if defined:
            others = in_memory(self._defined_batch, defined, bad)
            numbers = np.array([*fast, *defined], np.int64)
            order = np.argsort(numbers)
            batch = pa.concat_batches([batch, others]).take(pa.array(order))
            numbers = numbers[order]
        if not self.columns:
            batch = without_columns(len(numbers))
        yield Decoded(batch, numbers, np.zeros_like(numbers), (len(values), 0), bad)

    def described(self, value: bytes) -> dict[str, str]:
        try:
            found = json_object(value)
        except (ValueError, MemoryError):
            return {}
        return {key: type(each).__name__ for key, each in found.items()}

    def _objects(self, values: Sequence[bytes | None], bad: dict[int, str]) -> tuple[_Rows, _Rows]:
        """Messages that msgspec reads, and those that the definition does; others are bad."""
        fast: _Rows = {}
        defined: _Rows = {}
        for number, value in enumerate(values):
            try:
                if value is None:
                    bad[number] = NO_VALUE
                elif reason := refusal(value, self.limits):
                    bad[number] = reason
                elif (row := self._fast(value)) is not None:
                    fast[number] = row
                else:
                    defined[number] = self._defined(value)
            except ValueError as error:
                bad[number] = str(error)[:REASON_MAX]
            except MemoryError:
                bad[number] = OUT_OF_MEMORY
        return fast, defined

    def _fast(self, value: bytes) -> Any:  # noqa: ANN401 - an object of msgspec's
        """The wanted values of a message; None where the definition has to look at it."""
        if len(value) >= len(_DIGITS) and _DIGITS in value.translate(_AS_ZEROS):
            return None
        try:
            if not value.isascii():
                value.decode()  # msgspec does not look into the texts that it leaves out
            return self._decode(value)
        except _REFUSALS:
            return None

    def _fast_batch(self, rows: _Rows, bad: dict[int, str]) -> pa.RecordBatch:
        """Those rows; the ones with a text that is not a time are taken out, and are bad."""
        objects = list(rows.values())
        arrays: list[pa.Array] = []
        odd: dict[int, str] = {}
        for name, field, each in zip(self.columns, self._fields, self.schema, strict=True):
            values = list(map(field, objects))
            if self.declared[name] is not ColumnType.TIMESTAMP:
                arrays.append(pa.array(values, each.type))
            elif (array := _instants(values)) is not None:
                arrays.append(array)
            else:
                array, reasons = self._defined_instants(name, values)
                arrays.append(array)
                odd = reasons | odd
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if not odd:
            return batch
        numbers = list(rows)
        for index, reason in odd.items():
            bad[numbers[index]] = reason
            del rows[numbers[index]]
        return batch.take(pa.array([n for n in range(len(numbers)) if n not in odd], pa.int64()))

    def _defined_instants(
        self, name: str, values: list[int | str | None]
    ) -> tuple[pa.Array, dict[int, str]]:
        """Instants one by one, with nulls for those that are none, and why they are none."""
        read: list[int | None] = []
        reasons: dict[int, str] = {}
        for index, value in enumerate(values):
            try:
                read.append(json_value(name, value, self.declared[name]))
            except ValueError as error:
                reasons[index] = str(error)[:REASON_MAX]
                read.append(None)
        return pa.array(read, self.schema.field(name).type), reasons

    def _defined(self, value: bytes) -> list[Any]:
        """The wanted values of a message by the definition; ValueError says what is wrong."""
        found = json_object(value)
        return [json_value(name, found.get(name), self.declared[name]) for name in self.columns]

    def _defined_batch(self, rows: _Rows, _bad: dict[int, str]) -> pa.RecordBatch:
        arrays = [
            pa.array([row[index] for row in rows.values()], each.type)
            for index, each in enumerate(self.schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _instants(values: list[Any]) -> pa.Array | None:
    """Instants of texts alone or of numbers alone; None where values are to be read one by one."""
    is_number = next((type(value) for value in values if value is not None), str) is int
    try:
        return instants(pa.array(values, pa.int64() if is_number else pa.string()))
    except pa.ArrowException:
        return None


def instants(stored: pa.Array) -> pa.Array:
    """Of ISO 8601 texts or milliseconds since 1970. ArrowInvalid where one is none."""
    if pa.types.is_integer(stored.type):
        return stored.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    return as_utc(stored)
