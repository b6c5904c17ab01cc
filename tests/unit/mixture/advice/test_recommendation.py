"""What a line measured goes before measured regimes, and is never contradicted by them."""

from __future__ import annotations

from dataclasses import replace

from support.there import there

from forebay.mixture.advice.recommendation import Gain, Recommendation, ToldAdvice, with_own_figures
from forebay.mixture.metrics.estimate import Estimate

ELSEWHERE = Recommendation(
    changes=True,
    variant="mixed+head",
    declared="mixture",
    gains=(Gain("late", 5, 0.06, 0.01),),
    measured="2026-11-23",
)


def test_what_is_clearly_better_here_is_recommended() -> None:
    measured = {"mixture+fnw": Estimate(0.0189, 0.0101, 0.0277), "mixed+head": Estimate(0.01, 0, 1)}
    found = there(with_own_figures("mixture", measured, ELSEWHERE))
    assert (found.changes, found.variant) == (True, "mixture+fnw")
    assert found.words == (
        "train.paradigm: mixture, train.delay: fnw is recommended: expected difference in AUC "
        "against mixture: +.0189 ± .0088 in windows of this line (1 seed)"
    )


def test_several_regimes_are_said_by_their_mean_and_how_far_they_are_apart() -> None:
    gains = tuple(Gain(name, 5, auc, 0.1) for name, auc in (("a", 0.01), ("b", 0.03)))
    words = replace(ELSEWHERE, gains=gains).words
    assert words.endswith(
        "against mixture: +.0200 in the 2 measured regimes most like this data, measured 2026-11-23"
    )
    three = replace(ELSEWHERE, gains=(*gains, Gain("c", 5, 0.02, None)))
    assert f": +.0200 ± .{round(4.3027 * 100 / 3**0.5):04d} in the 3 measured" in three.words
    kept = replace(three, changes=False)
    assert kept.words == (
        "no measured variant clearly beats mixture in the 3 measured regimes most like this data"
    )


def test_what_this_line_denies_is_not_recommended() -> None:
    level = {"mixed+head": Estimate(0.001, -0.004, 0.006)}
    found = there(with_own_figures("mixture", level, ELSEWHERE))
    assert (found.changes, found.variant, found.settings) == (
        False, "mixture", "train.paradigm: mixture"
    )  # fmt: skip
    assert found.words == "no measured variant clearly beats mixture in windows of this line"


def test_what_is_clearly_worse_here_is_not_recommended() -> None:
    worse = {"mixed+head": Estimate(-0.02, -0.03, -0.01)}
    for auc in (None, -0.015):  # as little as a regime measured, or less
        gains = (*ELSEWHERE.gains, Gain("incident", 5, auc, None))
        assert not there(
            with_own_figures("mixture", worse, replace(ELSEWHERE, gains=gains))
        ).changes


def test_what_this_line_cannot_tell_stays_recommended() -> None:
    unsure = {"mixed+head": Estimate(0.001, -0.08, 0.082), "stream": Estimate(-0.01, -0.02, -0.005)}
    for measured in (unsure, {}):
        assert with_own_figures("mixture", measured, ELSEWHERE) is ELSEWHERE
    assert with_own_figures("mixture", unsure, None) is None
    found = there(with_own_figures("mixture", unsure, ELSEWHERE, ["mixed+head"]))
    assert not found.changes, "the gate could tell"
    found = there(with_own_figures("mixture", {}, ELSEWHERE, ["mixed+head"]))
    assert found.words == "no measured variant clearly beats mixture in windows of this line"
    better = {"batch": Estimate(0.02, 0.01, 0.03)}
    assert with_own_figures("mixture", better, None, ["batch"]) is None


def test_what_seeds_alone_may_move_is_no_reason() -> None:
    close = Estimate(0.0030, 0.0020, 0.0040)
    assert with_own_figures("mixture", {"stream": close}, None) is None
    sure = Estimate(0.0030, 0.0020, 0.0040, seeds=3)
    assert there(with_own_figures("mixture", {"stream": sure}, None)).variant == "stream"


def test_summaries_of_before_are_read() -> None:
    gain = {"regime": "late", "seeds": 5, "auc_difference": 0.06, "plus_minus": 0.01}
    stored = {"changes": True, "variant": "mixed+head", "options": {}, "declared": "mixture"}
    found = ToldAdvice.model_validate(
        {"words": "-", "recommendation": {**stored, "expected": [gain], "measured": "2026-11-23"}}
    )
    assert found.recommendation == ELSEWHERE
