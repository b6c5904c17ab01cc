"""JSON messages with faults."""

from __future__ import annotations

import json
import random

from support.hostile.bytes_changed import Places, changed

_ROW = {
    "i": 7,
    "f": 2.5,
    "s": "wörd\n\\",
    "b": True,
    "t": "2026-03-01T07:30:00.123456Z",
    "ls": ["a", None],
    "li": [1, None],
    "lf": [0.5, 1e3],
    "x": {"y": [{"z": None}]},
}
_PLAIN = {key: value for key, value in _ROW.items() if key not in {"ls", "li", "lf", "x"}}
_WORDS = (
    b"null", b"NaN", b"-Infinity", b"1e999", b"-0", b"0.1e-400", b"\\ud800", b"\\u0000", b"\xff",
    b"\xef\xbb\xbf", b"\x00", b'"', b"{", b"}", b"[", b"]", b":", b",", b"\n",
)  # fmt: skip
_REPEATED = (b"[", b"{", b'{"x":', b'[{"x":', b"1", b"0", b"\\", b'"', b" ", b",", b"[]", b"{},")


def changed_object(chance: random.Random) -> bytes:
    row = dict(_ROW if chance.random() < 0.5 else _PLAIN)
    if chance.random() < 0.3:
        row[chance.choice(list(row))] = chance.choice((None, 2**70, 1e300, "", [], {}, [[1]], -1))
    found = json.dumps(row, ensure_ascii=chance.random() < 0.5).encode()
    if chance.random() < 0.7:
        found = changed(found, Places(), chance)
    for _ in range(chance.choice((0, 0, 1, 2, 3))):
        at = chance.randrange(len(found) + 1)
        found = found[:at] + _inserted(chance) + found[at:]
    return found


def _inserted(chance: random.Random) -> bytes:
    if chance.random() < 0.95:
        return chance.choice(_WORDS)
    times = 50_000 if chance.random() < 0.05 else chance.choice((10, 101, 1000, 5000))
    return chance.choice(_REPEATED) * times
