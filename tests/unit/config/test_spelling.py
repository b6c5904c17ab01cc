"""Did you mean."""

from __future__ import annotations

import pytest

from forebay.config.spelling import edits, nearest


@pytest.mark.parametrize(
    ("word", "other", "expected"),
    [("", "", 0), ("kind", "kind", 0), ("kidn", "kind", 1), ("knd", "kind", 1), ("ab", "cd", 2)],
)
def test_edits(word: str, other: str, expected: int) -> None:
    assert edits(word, other) == edits(other, word) == expected


def test_nearest() -> None:
    assert nearest("kakfa", ["iceberg", "kafka", "log"]) == "kafka"
    assert nearest("LOG", ["iceberg", "kafka", "log"]) == "log"
    assert nearest("zebra", ["iceberg", "kafka", "log"]) == ""
    assert nearest("x", []) == ""


def test_equals_are_told_apart_by_what_is_preferred() -> None:
    assert nearest("cat", ["bat", "hat"], ["hat"]) == "hat"
    assert nearest("cat", ["bat", "hat", "rat"], ["rat"], ["hat"]) == "rat"
