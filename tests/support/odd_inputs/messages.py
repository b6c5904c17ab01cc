"""Odd messages: what the decoders make of them, without a broker."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.decoders import decoder_named
from support.odd_inputs import columns as odd
from support.odd_inputs.readers import as_declared, json_rows, table_rows

_TYPES = ("string", "int", "float", "bool", "timestamp", "list<string>", "list<int>", "list<float>")
_RAW = (
    b"", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[]", b"1", b"null", b"{", b'{"a":1}{"a":2}', b"{}\n{}",
    b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5_000 + b"}",
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a": "\\ud800"}', b'{"a": "\xff"}',
    b'{"a": 01}', b"{'a': 1}", b'{"a": 1,}', b'{"a": "\x00"}', b'{"\\u0061": 1, "a": 2}', b"{}",
    b'{"a": true}', b'{"a": 1.0}', b'{"a": 9007199254740993.0}', b'{"a": -0}', b'{"a": 1e2}',
    b'{"a": "2026-02-30"}', b'{"a": "10000-01-01"}', b'{"a": 1e30}', b'{"a": 253402300800000}',
    b'{"a": 9223372036854775808}', b'{"a": {}}', b'{"a": [1, "x"]}', b'{"a": [[1]]}',
)  # fmt: skip


def message_problems(chance: random.Random) -> tuple[str, bool, list[str]]:
    """A column's type and some messages of it; whether all could be read; what is wrong.

    Wrong is a value that differs from what `json` reads, a message without a row or a reason, and
    anything that is raised.
    """
    if chance.random() < 0.3:
        return _arrow(chance)
    kind = chance.choice(_TYPES)
    count = chance.randrange(1, 6)
    if chance.random() < 0.6:
        values = [_valid(chance, kind) for _ in range(count)]
    else:
        values = [chance.choice(_RAW) for _ in range(count)]
    what = f"{kind}: {[each[:60] for each in values]}"
    try:
        return what, *_decoded(kind, values)
    except Exception as error:  # noqa: BLE001 - bad input must raise nothing at all
        return what, False, [f"{type(error).__name__}: {error}"]


def _arrow(chance: random.Random) -> tuple[str, bool, list[str]]:
    """The same of a micro-batch, whole or cut."""
    forms = odd.forms(chance, chance.randrange(1, 4))
    rows = chance.randrange(20)
    table = pa.table({each.name: each.array(chance, rows) for each in forms})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=chance.choice((1, 7, 100)))
    whole = sink.getvalue().to_pybytes()
    message = whole if chance.random() < 0.7 else whole[: chance.randrange(len(whole))]
    declared = {each.name: each.declared for each in forms}
    what = f"arrow-ipc, {len(message)} of {len(whole)} bytes: {table.schema.types}"
    types = {name: ColumnType(kind) for name, kind in declared.items()}
    try:
        parts = list(decoder_named("arrow-ipc", list(declared), types).decode([message]))
    except Exception as error:  # noqa: BLE001 - bad input must raise nothing at all
        return what, False, [f"{type(error).__name__}: {error}"]
    reasons = [*(why for part in parts for why in part.bad_messages.values())]
    reasons += [why for part in parts for why in part.bad_rows.values()]
    if reasons:
        return what, False, [f"it is whole, but: {reasons}"] if message == whole else []
    found = [row for part in parts for row in table_rows(part.batch, declared)]
    # Cut behind its last record batch, it holds all of them.
    same = json.dumps(found) == json.dumps(table_rows(table, declared))
    return what, same, [] if same else [f"other rows: {found[:3]}"]


def _decoded(kind: str, values: list[bytes]) -> tuple[bool, list[str]]:
    declared = {"a": kind}
    good: dict[int, Any] = {}
    reasons: dict[int, str] = {}
    for part in decoder_named("json", ["a"], {"a": ColumnType(kind)}).decode(values):
        numbers = part.messages.tolist()
        column = part.batch["a"]
        if kind == "timestamp":
            column = column.cast("int64")
        rows = dict(zip(numbers, column.to_pylist(), strict=True))
        reasons |= part.bad_messages
        reasons |= {numbers[row]: why for row, why in part.bad_rows.items()}
        good |= {number: value for number, value in rows.items() if number not in reasons}
    found = []
    if sorted([*good, *reasons]) != list(range(len(values))):
        found.append(f"messages without a row or a reason: rows {good}, reasons {reasons}")
    found += [f"message {at}: no reason" for at, why in reasons.items() if not why.strip()]
    for at, value in good.items():
        wanted = json_rows([values[at]], declared)[0]
        if as_declared({"a": value}, declared) != wanted:
            found.append(f"message {at}: {value!r}, and json reads {wanted['a']!r}")
    return not reasons, found


def _valid(chance: random.Random, kind: str) -> bytes:
    if kind.startswith("list<"):
        value: Any = [_scalar(chance, kind[5:-1]) for _ in range(chance.randrange(4))]
    else:
        value = _scalar(chance, kind)
    row = {"b": chance.choice((1, "x", [{}])), "a": chance.choice((value, value, None))}
    text = json.dumps(row, ensure_ascii=chance.random() < 0.5)
    return chance.choice(("", "\n ", " ")).encode() + text.encode()


def _scalar(chance: random.Random, kind: str) -> Any:
    if kind == "string":
        return chance.choice(odd.TEXTS)
    if kind == "int":
        return chance.choice(odd.INTS)
    if kind == "float":
        return chance.choice((0.1, -0.0, 1e300, 5e-324, 7, -3, 2**53))
    if kind == "bool":
        return chance.random() < 0.5
    return chance.choice((0, -1, 1_772_323_200_123, "2026-03-01", "2026-03-01T10:00:00.5+02:00"))
