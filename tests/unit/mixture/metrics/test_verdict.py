"""The sentences of the report, and shares with their intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.there import there

from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.figures import EventScores
from forebay.mixture.metrics.share import Share
from forebay.mixture.metrics.verdict import (
    completeness_words,
    difference_words,
    doubtful_words,
    one_class_words,
    share_text,
)


def test_differences_are_told_with_what_they_cover() -> None:
    assert difference_words("mixture", "mixed", Estimate(0.0004, -0.0021, 0.0029)) == (
        "mixture and mixed do not differ "
        "(difference 0.0004, 95% interval -0.0021 to 0.0029, rows only)"
    )
    assert difference_words("a", "b", Estimate(0.01, 0.005, 0.015)) == (
        "a is better than b on these rows only "
        "(difference 0.0100, 95% interval 0.0050 to 0.0150, rows only)"
    )
    near = Estimate(-0.003, -0.005, -0.001)
    assert difference_words("a", "b", near).startswith(
        "a and b do not differ by more than another seed may move (difference -0.0030"
    )
    assert "a is worse than b" in difference_words("a", "b", near, noise=0.0)
    seeds = difference_words("a", "b", replace(near, seeds=3))
    assert seeds.startswith("a is worse than b (difference -0.0030")


def test_probabilities_that_mean_little_are_said() -> None:
    figures = EventScores(calibration=1.0, normalised_entropy=0.8, positives=30)
    answers = {
        "good": {},
        "entropy": {"normalised_entropy": 1.01},
        "twice": {"calibration": 2.01},
        "half": {"calibration": 0.49},
        "few": {"calibration": 9.0, "positives": 29},
        "half/memory": {"calibration": 9.0},
        "one class": {"calibration": 0.4, "normalised_entropy": None},
    }
    found = doubtful_words({n: figures.model_copy(update=of) for n, of in answers.items()})
    assert [words.split()[2] for words in found] == ["entropy", "twice", "half"]
    assert found[1] == (
        "probabilities of twice are unusable as they are: it expects 2.01 positives for each that "
        "came, and its normalised entropy is 0.800"
    )


def said(paradigms: str, known: int, positives: int) -> str | None:
    return completeness_words(paradigms.split(), Share.of([known], [positives]))


def test_few_known_positives_are_said_of_who_trusts_fresh_labels_and_of_nobody_else() -> None:
    one = (
        "mixture is a bad choice here: only 31% of positives are known when the stream row is "
        "published (3,100 of 10,000); the others train as negatives"
    )
    assert said("mixture mixed", 3_100, 10_000) == one
    assert said("mixture mixed stream", 3_100, 10_000) == f"{one}; the same holds for stream"
    single = "batch_then_stream is a bad choice here: only 50% "
    assert str(said("batch_then_stream batch", 20, 40)).startswith(single)
    assert said("mixture", 800, 1000) is not None
    incomplete = "labels of the stream are incomplete"
    assert str(said("stream+head mixed", 20, 40)).startswith(incomplete)
    assert str(said("mixed", 0, 40)).startswith(f"{incomplete}: only 0% of positives")
    assert said("mixture", 90, 100) is said("mixture", 0, 0) is None
    assert said("mixture", 8, 29) is None, "too few to say"
    assert said("mixture", 26, 30) is None, "the interval reaches 90%"
    assert said("batch_then_stream+head mixture+fnw batch", 20, 40) is said("batch", 20, 40) is None


def test_rows_of_one_class_are_counted_and_a_share_is_never_rounded_up() -> None:
    counts = [(0, 312), (1_312, 1_312), (1, 1), (3, 312), (0, 0)]
    assert [one_class_words(*each) for each in counts] == [
        "one class: 0 positives of 312 rows",
        "one class: 1,312 positives of 1,312 rows",
        "one class: 1 positive of 1 row",
        "one class in each window: 3 positives of 312 rows",
        "no rows judged",
    ]
    found = [share_text(*each) for each in ((999, 1000), (1, 3), (3, 3), (0, 0))]
    assert found == ["99%", "33%", "100%", "none"]


def found(parts: list[int], wholes: list[int]) -> Share:
    return there(Share.of(parts, wholes))


def test_the_interval_is_wilsons_and_words_never_round_up() -> None:
    """Newcombe 1998, table I: 81 of 263 is 0.2553 to 0.3662, 0 of 20 is 0 to 0.1611."""
    share = found([81], [263])
    assert (round(share.low, 4), round(share.high, 4)) == (0.2553, 0.3662)
    bounds = {"low": share.low, "high": share.high}
    assert share.as_json() == {"share": 81 / 263, **bounds, "part": 81, "whole": 263}
    none = found([0], [20])
    assert (none.low, round(none.high, 4)) == (0.0, 0.1611)
    assert found([899], [1000]).words.startswith("89% (")
    assert found([999_999], [1_000_000]).words == "99% (99%-99%) of 1,000,000"
    assert Share.of([], []) is None
    assert Share.of([0, 0], [0, 0]) is None


def test_groups_that_differ_widen_the_interval_and_alike_ones_do_not() -> None:
    alone, alike = found([50], [100]), found([25, 25], [50, 50])
    apart = found([50, 0], [50, 50])
    assert (alike.low, alike.high) == (alone.low, alone.high)
    assert apart.high - apart.low > 2 * (alone.high - alone.low)


def test_groups_drawn_together_are_covered_as_often_as_it_says() -> None:
    """Groups whose share varies: the interval of rows drawn alone would hold half of the time."""
    random, held = np.random.default_rng(4), 0
    for _ in range(400):
        share = found(random.binomial(200, random.beta(6, 6, 12)).tolist(), [200] * 12)
        held += share.low <= 0.5 <= share.high
    assert held / 400 > 0.88
