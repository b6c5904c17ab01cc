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
    assert difference_words("mixture", "mixed", Estimate(0.0004, -0.0021, 0.0029)) == (
        "mixture and mixed do not differ "
        "(difference 0.0004, 95% interval -0.0021 to 0.0029, rows only)"
    )


def test_better_and_worse() -> None:
    assert difference_words("a", "b", Estimate(0.01, 0.005, 0.015)).startswith("a is better than b")
    assert difference_words("a", "b", Estimate(-0.01, -0.015, -0.005)).startswith("a is worse than")


def test_few_known_positives_are_said_with_the_figure() -> None:
    assert completeness_words(["mixture", "mixed"], 3100, 10_000) == (
        "mixture is a bad choice here: only 31% of positives are known when the stream row is "
        "published (3,100 of 10,000); the others train as negatives"
    )
    assert completeness_words(["mixture", "mixed", "stream"], 1, 2) == (
        "mixture is a bad choice here: only 50% of positives are known when the stream row is "
        "published (1 of 2); the others train as negatives; the same holds for stream"
    )


@pytest.mark.parametrize(
    ("paradigms", "known", "positives", "words"),
    [
        (["batch_then_stream", "batch"], 1, 2, "batch_then_stream is a bad choice here: only 50% "),
        (["stream+head", "mixed"], 1, 2, "labels of the stream are incomplete"),
        (["mixed"], 0, 10, "labels of the stream are incomplete: only 0% of positives"),
    ],
)
def test_only_who_trusts_fresh_labels_as_they_are_gets_a_verdict(
    paradigms: list[str], known: int, positives: int, words: str
) -> None:
    assert str(completeness_words(paradigms, known, positives)).startswith(words)


def test_complete_or_unknown_labels_need_no_words() -> None:
    assert completeness_words(["mixture"], 9, 10) is None
    assert completeness_words(["mixture"], 89, 100) is not None
    assert completeness_words(["mixture"], 0, 0) is None


def test_who_corrects_late_labels_or_reads_complete_ones_is_not_warned() -> None:
    assert completeness_words(["batch_then_stream+head", "mixture+fnw", "batch"], 1, 2) is None
    assert completeness_words(["batch"], 1, 2) is None


def test_a_share_is_never_rounded_up() -> None:
    found = [share_text(*each) for each in ((999, 1000), (1, 3), (3, 3), (0, 0))]
    assert found == ["99%", "33%", "100%", "none"]


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
