"""The sentences of the report."""

from __future__ import annotations

import pytest

from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.verdict import (
    completeness_words,
    difference_words,
    one_class_words,
    share_text,
)


def test_paradigms_that_do_not_differ() -> None:
    words = difference_words("mixture", "mixed", Estimate(0.0004, -0.0021, 0.0029))
    assert words == (
        "mixture and mixed do not differ "
        "(difference 0.0004, 95% interval -0.0021 to 0.0029, rows only)"
    )


def test_better_and_worse() -> None:
    assert difference_words("a", "b", Estimate(0.01, 0.005, 0.015)).startswith("a is better than b")
    assert difference_words("a", "b", Estimate(-0.01, -0.015, -0.005)).startswith("a is worse than")


def test_few_known_positives_are_said_with_the_figure() -> None:
    words = completeness_words(["mixture", "mixed"], 3100, 10_000)
    assert words == (
        "mixture is a bad choice here: only 31% of positives are known when the stream row is "
        "published (3,100 of 10,000); the others train as negatives"
    )
    assert completeness_words(["mixture", "mixed", "stream"], 1, 2) == (
        "mixture is a bad choice here: only 50% of positives are known when the stream row is "
        "published (1 of 2); the others train as negatives; the same holds for stream"
    )


def test_after_its_warm_start_one_tower_trusts_fresh_labels_too() -> None:
    words = completeness_words(["batch_then_stream", "batch"], 1, 2)
    assert words is not None
    assert words.startswith("batch_then_stream is a bad choice here: only 50% of positives")
    corrected = completeness_words(["batch_then_stream+head"], 1, 2)
    assert corrected is not None
    assert corrected.startswith("labels of the stream are incomplete")


def test_other_paradigms_get_the_figure_without_a_verdict() -> None:
    words = completeness_words(["mixed"], 0, 10)
    assert words is not None
    assert words.startswith("labels of the stream are incomplete: only 0% of positives")


def test_complete_or_unknown_labels_need_no_words() -> None:
    assert completeness_words(["mixture"], 99, 100) is None
    assert completeness_words(["mixture"], 0, 0) is None


def test_a_share_is_never_rounded_up() -> None:
    assert share_text(999, 1000) == "99%"
    assert share_text(0, 0) == "none"


@pytest.mark.parametrize(
    ("positives", "rows", "words"),
    [
        (0, 312, "one class: 0 positives of 312 rows"),
        (1_312, 1_312, "one class: 1,312 positives of 1,312 rows"),
        (1, 1, "one class: 1 positive of 1 row"),
        (3, 312, "one class in each window: 3 positives of 312 rows"),
        (0, 0, "no rows judged"),
    ],
)
def test_rows_of_one_class_are_counted(positives: int, rows: int, words: str) -> None:
    assert one_class_words(positives, rows) == words
