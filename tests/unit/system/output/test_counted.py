"""Numbers agree with their nouns."""

from __future__ import annotations

from forebay.system.output.counted import counted


def test_one_is_singular_and_all_others_are_plural() -> None:
    shown = [counted(number, "row") for number in (0, 1, 2, 1_000)]
    assert shown == ["0 rows", "1 row", "2 rows", "1,000 rows"]
