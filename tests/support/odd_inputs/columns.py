"""Columns of every declared type, stored in every form that is read as it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 3
_NAMES = (
    "user", "a b", "naïve", "日本", "x.y", "it's", 'say "hi"', "a/b", "1st", "50%", "k=v",
    "emoji😀", "UPPER", "class", "from", "null", "true", "~", "-", "a:b", "#x", "[0]", "{a}", "$x",
    "${", "a\\b", "*", "\u00a0", "e\u0301", "\u202e", "l" * 199, "__index_level_0__", "list",
    "element", "time",
)  # fmt: skip
TEXTS = (
    "", " ", "a", "ä", "日本語", "😀", "null", "NaN", "x" * 5_000, "a\nb", "\t", "\u202egnp.exe",
    "a\u0000b", "'; drop table", '"', "\\", "\ufeffbom", "e\u0301", "1", "-0", "true",
)  # fmt: skip
INTS = (0, 1, -1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
FLOATS = (
    0.0, -0.0, 1.5, -1.5, 1e308, -1e308, 5e-324, 1e-300, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


class Form(NamedTuple):
    """How a column is stored. declared: its type in YAML."""

    name: str
    declared: str
    stored: pa.DataType
    value: Callable[[random.Random], Any]
    nulls: float
    is_encoded: bool

    def array(self, chance: random.Random, rows: int) -> pa.Array:
        values = [None if chance.random() < self.nulls else self.value(chance) for _ in range(rows)]
        array = pa.array(values, self.stored)
        return array.dictionary_encode() if self.is_encoded else array


def forms(chance: random.Random, count: int) -> list[Form]:
    taken = {"id", "at", "y"}
    found = []
    for _ in range(count):
        declared = chance.choice(list(_FORMS))
        stored, value = chance.choice(_FORMS[declared])
        is_encoded = declared in {"string", "int"} and chance.random() < 0.2
        is_encoded &= not pa.types.is_null(stored)
        nulls = chance.choice((0.0, 0.2, 1.0))
        name = _column_name(chance, taken)
        found.append(Form(name, declared, stored, value, nulls, is_encoded))
    return found


def _column_name(chance: random.Random, taken: set[str]) -> str:
    name = chance.choice(_NAMES) if chance.random() < 0.6 else f"c{chance.randrange(1000)}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def times(chance: random.Random, rows: int) -> pa.Array:
    within = sorted(chance.randrange(DAYS * 86_400) for _ in range(rows))
    found = [START + timedelta(seconds=each) for each in within]
    form = chance.randrange(7)
    if form == 0:
        return pa.array([f"{each:%Y-%m-%dT%H:%M:%SZ}" for each in found])
    if form == 1:
        return pa.array([each.date() for each in found], pa.date32())
    unit = chance.choice(("s", "ms", "us", "ns"))
    zone = chance.choice((None, "UTC", "UTC", "+02:00", "Europe/Berlin"))
    return pa.array(found, pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))


def _of(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


def _many(each: Callable[[random.Random], Any]) -> Callable[[random.Random], list[Any]]:
    def value(chance: random.Random) -> list[Any]:
        return [None if chance.random() < 0.1 else each(chance) for _ in range(chance.randrange(4))]

    return value


def _within(bits: int, *, signed: bool = True) -> Callable[[random.Random], int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return _of(low, high, 0, 1, 7)


_text, _int, _float = _of(*TEXTS), _of(*INTS), _of(*FLOATS)


def _instant_of(year: int) -> datetime:
    return datetime(year, 2, 28, 23, 59, 59, tzinfo=UTC)


_instant = _of(*(_instant_of(year) for year in (1900, 1969, 1970, 2026, 2200)))
_Form = tuple[pa.DataType, Callable[[random.Random], Any]]
_FORMS: dict[str, list[_Form]] = {
    "string": [(pa.string(), _text), (pa.large_string(), _text), (pa.null(), _of(None))],
    "int": [
        (pa.int64(), _int),
        (pa.int32(), _within(32)),
        (pa.int16(), _within(16)),
        (pa.int8(), _within(8)),
        (pa.uint32(), _within(32, signed=False)),
        (pa.uint8(), _within(8, signed=False)),
        (pa.uint64(), _within(63, signed=False)),
        (pa.float64(), _of(0.0, 1.0, -3.0, 2.0**53)),
    ],
    "float": [
        (pa.float64(), _float),
        (pa.float32(), _of(0.0, 1.5, -2.25, float("inf"), float("nan"))),
        (pa.int64(), _of(0, 1, -(2**40), 2**53)),
        (pa.int8(), _within(8)),
        (pa.decimal128(10, 2), _of(Decimal("1.50"), Decimal("-99999999.25"), Decimal("0.00"))),
        (pa.decimal128(38, 10), _of(Decimal("0.5"), Decimal("123456789.0625"))),
    ],
    "bool": [(pa.bool_(), _of(True, False))],
    "timestamp": [
        (pa.timestamp("us", "UTC"), _instant),
        (pa.timestamp("ms"), _of(*(_instant_of(year) for year in (1900, 1970, 2026)))),
        (pa.timestamp("ns", "UTC"), _of(datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC))),
        (pa.date32(), _of(date(1969, 12, 31), date(2026, 2, 28))),
        (pa.string(), _of("2026-03-01", "2026-03-01T10:00:00Z", "2026-03-01 10:00:00.5+02:00")),
    ],
    "list<string>": [
        (pa.list_(pa.string()), _many(_text)),
        (pa.large_list(pa.large_string()), _many(_text)),
        (pa.list_(pa.dictionary(pa.int32(), pa.string())), _many(_of("a", "b", ""))),
    ],
    "list<int>": [
        (pa.list_(pa.int64()), _many(_int)),
        (pa.list_(pa.int16()), _many(_within(16))),
        (pa.list_(pa.int32(), 2), lambda chance: [chance.randrange(9), None]),
    ],
    "list<float>": [
        (pa.list_(pa.float64()), _many(_float)),
        (pa.large_list(pa.float32()), _many(_of(0.5, -1.0, float("nan")))),
    ],
}
