"""What a JSON message is, and what its values are in declared types: the definition, plain Python.

`json_rows` reads faster, and holds itself against this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from forebay.config.base import parse_instant
from forebay.config.sources import LIST_ITEMS, ColumnType
from forebay.datatasks.sources.formats.decoder import MessageLimits
from forebay.system.instants import to_us

DIGITS_MAX = 4300  # of an integer that Python makes of a text
_INT64 = range(-(2**63), 2**63)
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
    return limits.stored_refusal(len(value)) or limits.refusal(1, _decoded_bytes(value))


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


def _decoded_bytes(value: bytes) -> int:
    """What a message may take as objects of Python: an estimate, and more than that as a rule."""
    signs = sum(each * value.count(sign) for sign, each in _SIGN_BYTES.items())
    return _CHARACTER_BYTES * len(value) + signs


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
