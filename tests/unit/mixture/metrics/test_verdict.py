"""The sentences of the report."""

from __future__ import annotations

from dataclasses import replace

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


def test_paradigms_that_do_not_differ() -> None:
    assert difference_words("mixture", "mixed", Estimate(0.0004, -0.0021, 0.0029)) == (
        "mixture and mixed do not differ "
        "(difference 0.0004, 95% interval -0.0021 to 0.0029, rows only)"
    )


def test_one_seed_is_said_and_below_what_seeds_move_nothing_is_better() -> None:
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


def test_few_known_positives_are_said_with_the_figure_of_who_trusts_fresh_labels() -> None:
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


def test_complete_unknown_or_corrected_labels_need_no_words() -> None:
    assert said("mixture", 90, 100) is said("mixture", 0, 0) is None
    assert said("mixture", 8, 29) is None, "too few to say"
    assert said("mixture", 26, 30) is None, "the interval reaches 90%"
    assert said("batch_then_stream+head mixture+fnw batch", 20, 40) is said("batch", 20, 40) is None


def test_rows_of_one_class_are_counted() -> None:
    counts = [(0, 312), (1_312, 1_312), (1, 1), (3, 312), (0, 0)]
    assert [one_class_words(*each) for each in counts] == [
        "one class: 0 positives of 312 rows",
        "one class: 1,312 positives of 1,312 rows",
        "one class: 1 positive of 1 row",
        "one class in each window: 3 positives of 312 rows",
        "no rows judged",
    ]


def test_a_share_is_never_rounded_up() -> None:
    found = [share_text(*each) for each in ((999, 1000), (1, 3), (3, 3), (0, 0))]
    assert found == ["99%", "33%", "100%", "none"]
