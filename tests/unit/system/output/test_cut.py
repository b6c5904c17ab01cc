"""A part of a line that fits, and the column of its place in it."""

from __future__ import annotations

import pytest

from forebay.system.output.text import around

LONG = "".join(f"{number:03}" for number in range(100))


@pytest.mark.parametrize(
    ("line", "place", "shown", "before"),
    [
        ("key: value", 5, "key: value", 5),
        ("key", 3, "key", 3),
        ("key", 9, "key", 3),
        ("a" * 20, 19, "a" * 20, 19),
        ("a" * 19, 19, "a" * 19, 19),
        ("a" * 20, 20, "…" + "a" * 18, 19),
        (LONG, 0, LONG[:19] + "…", 0),
        (LONG, 10, LONG[:19] + "…", 10),
        (LONG, 11, "…" + LONG[2:20] + "…", 10),
        (LONG, 150, "…" + LONG[141:159] + "…", 10),
        (LONG, 299, "…" + LONG[281:], 19),
        (LONG, 300, "…" + LONG[282:], 19),
        ("\tx: 1", 1, "    x: 1", 4),
        ("ab\tx: 1", 3, "ab  x: 1", 4),
        ("日本: x", 4, "日本: x", 6),
        ("日" * 50, 25, "…" + "日" * 9 + "…", 9),
        ("日" * 50, 49, "…" + "日" * 9, 17),
        ("e\u0301: x", 4, "e\u0301: x", 3),
        ("\x1b: x", 3, "\\x1b: x", 6),
    ],
)
def test_what_is_shown(line: str, place: int, shown: str, before: int) -> None:
    assert around(line, place, 20) == (shown, before)
