"""Did you mean."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.yaml.spelling import edits, nearest


def test_equals_are_told_apart_by_what_is_preferred() -> None:
    assert nearest("cat", ["bat", "hat"], ["hat"]) == "hat"
    assert nearest("x", []) == ""
    assert nearest("cat", ["bat", "hat", "rat"], ["rat"], ["hat"]) == "rat"


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_edits_are_the_definition(word: str, other: str) -> None:
    @cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        options = [
            between(i - 1, j) + 1,
            between(i, j - 1) + 1,
            between(i - 1, j - 1) + (word[i - 1] != other[j - 1]),
        ]
        if i > 1 and j > 1 and word[i - 2 : i] == other[j - 2 : j][::-1]:
            options.append(between(i - 2, j - 2) + 1)
        return min(options)

    assert edits(word, other) == between(len(word), len(other))


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("abcdef", "xxcdef", True),  # two edits of six letters
        ("abcde", "xxcde", True),  # two edits of five, and three fifths alike
        ("abcd", "xxcd", False),  # two edits of four, and half alike
        ("abcdefghi", "xxxdefghi", True),
        ("xyzuvw", "xxxxxw", False),
        ("ab", "ax", True),  # one edit is always near
        ("a", "x", True),
        ("LOG", "log", True),
        ("offset_hours", "offset", True),  # six edits, and two thirds alike
        ("learning_rate_schedule", "dense_learning_rate", False),  # much alike, and another thing
        ("learning_rate_schedule", "embedding_learning_rate", False),
    ],
)
def test_how_far_a_slip_may_be(word: str, known: str, meant: bool) -> None:
    assert (nearest(word, [known]) == known) is meant


def test_fewest_edits_come_before_what_is_preferred_and_that_before_likeness() -> None:
    assert nearest("weight", ["weigth", "weights", "wait"], ["wait"]) in {"weigth", "weights"}
    assert nearest("abc", ["abd", "xbc"]) == nearest("abc", ["xbc", "abd"])
    assert nearest("abcd", ["abxd", "abcx"], [], ["abcx"]) == "abcx"
    assert nearest("stream", ["streams", "steam"], ["missing"], ["steam"]) == "steam"
