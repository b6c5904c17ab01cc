"""What is recommended when: by tables of regimes, and by what a line measured itself."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.there import there

from forebay.errors import DataError
from forebay.mixture.advice import regimes
from forebay.mixture.advice.decision import (
    Situation,
    advise,
    learns_late_labels,
    recommend,
    regimes_like,
)
from forebay.mixture.advice.recommendation import Gain, Recommendation, ToldAdvice, with_own_figures
from forebay.mixture.advice.regimes import (
    MeasuredVariant,
    Regime,
    RegimeTable,
    difference_of,
    measured_regimes,
    read_table,
)
from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.share import Share

TABLE = measured_regimes()


def table(*regimes: Regime) -> RegimeTable:
    return RegimeTable(measured=date(2026, 11, 23), origin="a test", regimes=regimes)


def regime(name: str, completeness: float, variants: dict[str, float], **more: Any) -> Regime:
    measured = [{"variant": variant, "auc": auc} for variant, auc in variants.items()]
    return Regime.model_validate(
        {"name": name, "data": "-", "completeness": completeness, "seeds": 1, **more}
        | {"variants": measured}
    )


def recommended(situation: Situation, *regimes: Regime, declared: str = "stream") -> Recommendation:
    return there(recommend(situation, declared, table(*regimes)))


@pytest.mark.parametrize(
    ("completeness", "advised"),
    [
        *[(known, "mixture+head") for known in (0.0, 0.3, 0.5, 0.73)],
        *[(known, "mixture+fnw") for known in (0.74, 0.89)],
        *[(known, "mixture") for known in (0.92, 1.0)],
    ],
)
def test_what_learning_md_says_to_begin_with(completeness: float, advised: str) -> None:
    assert there(recommend(Situation(completeness), "mixture", TABLE)).variant == advised


def test_what_cannot_be_declared_is_not_recommended() -> None:
    late = regime("late", 0.5, {"stream+head": 0.8, "mixed": 0.7, "batch": 0.6, "stream": 0.5})
    assert recommended(Situation(0.5), late).variant == "stream+head"
    assert recommended(Situation(0.5, has_batch=False), late).variant == "stream"
    assert recommend(Situation(0.5, has_stream=False), "batch", table(late)) is None
    assert recommend(Situation(None), "stream", table(late)) is None


def test_one_answer_has_to_do_for_regimes_that_cannot_be_told_apart() -> None:
    calm = regime("calm", 1.0, {"stream": 0.8, "mixture": 0.799, "mixed": 0.7})
    incident = regime("incident", 1.0, {"stream": 0.7, "mixture": 0.781, "mixed": 0.783})
    found = recommended(Situation(1.0), calm, incident)
    assert found.variant == "mixture"
    assert [gain.regime for gain in found.gains] == ["calm", "incident"]
    assert [round(gain.auc or 0.0, 3) for gain in found.gains] == [-0.001, 0.081]


def test_regimes_that_are_about_as_late_resemble_data() -> None:
    late = [
        regime(f"late {known}", known, {"stream": 0.6, "mixed+head": 0.71, "mixture+fnw": 0.706})
        for known in (0.45, 0.5, 0.55)
    ]
    calm = regime("calm", 1.0, {"stream": 0.8, "mixed+head": 0.79, "mixture+fnw": 0.796})
    assert recommended(Situation(0.4), *late, calm, declared="batch").variant == "mixed+head"
    assert recommended(Situation(1.0), *[calm] * 3, late[0], declared="batch").variant == "stream"
    unsure = Situation(0.9, interval=(0.5, 0.99))
    assert {each.name for each in regimes_like(unsure, table(*late, calm))} == {
        *("late 0.45", "late 0.5", "late 0.55", "calm")
    }
    assert len(regimes_like(Situation(0.05), table(*late, calm))) == 3, "the nearest there are"


def test_of_variants_that_are_as_good_the_declared_one_stays_or_the_usual_one_is_taken() -> None:
    calm = regime("calm", 1.0, {"stream+fnw": 0.8, "mixture": 0.798, "mixed": 0.7975, "batch": 0.7})
    assert recommended(Situation(1.0), calm, declared="batch").variant == "mixture"
    kept = recommended(Situation(1.0), calm, declared="mixed")
    assert (kept.changes, kept.variant) == (False, "mixed")


def test_a_day_without_labels_in_the_sample_is_no_error() -> None:
    known = there(Share.of([0, *[95] * 9], [100] * 10))
    unsure = Situation(known.value, interval=(known.low, known.high))
    found = advise(known, unsure, "mixture", TABLE)
    assert (known.low < 0.9 < known.high, found.is_late) == (True, False)
    assert there(found.recommendation).variant == "mixture+fnw"
    always = there(Share.of([84, *[86] * 9], [100] * 10))
    late = Situation(always.value, interval=(always.low, always.high))
    assert advise(always, late, "mixture", TABLE).is_late


def test_sparse_streams_and_crowded_ids_are_their_own() -> None:
    sparse = [each.name for each in regimes_like(Situation(1.0, 0.1), TABLE)]
    assert sparse == ["100% known, sparse stream"]
    assert there(recommend(Situation(1.0, 0.1), "mixture", TABLE)).variant == "mixed"
    crowded = [each.name for each in regimes_like(Situation(1.0, crowded=True), TABLE)]
    assert crowded == ["100% known, collisions"]
    late = Situation(0.5, crowded=True)
    assert "49% known, fast drift" in [each.name for each in regimes_like(late, TABLE)]


def test_without_a_warm_start_one_tower_after_the_other_is_the_stream_alone() -> None:
    late = regime(
        "late",
        0.5,
        {"batch_then_stream+head": 0.8, "stream+head": 0.79, "batch_then_stream": 0.6}
        | {"stream": 0.5, "mixed": 0.7},
    )
    found = recommended(Situation(0.5), late, declared="batch_then_stream")
    assert (found.variant, found.gains[0].auc) == ("batch_then_stream+head", pytest.approx(0.2))
    assert found.settings == "train.paradigm: batch_then_stream, train.delay: head"
    bare = Situation(0.5, has_warm_start=False)
    found = recommended(bare, late, declared="batch_then_stream")
    assert (found.variant, found.gains[0].auc) == ("stream+head", pytest.approx(0.29))
    assert found.declared == "batch_then_stream"
    kept = recommended(bare, late, declared="batch_then_stream+head")
    assert (kept.changes, kept.variant) == (False, "batch_then_stream+head")


def test_who_learns_late_labels_as_they_are() -> None:
    late = {"stream", "mixed", "mixture", "batch_then_stream"}
    assert late == set(filter(learns_late_labels, [*late, "batch", "mixture+head", "stream+fnw"]))


def test_few_positives_say_nothing_and_the_limit_is_nine_of_ten() -> None:
    few, enough = there(Share.of([5], [29])), there(Share.of([5], [30]))
    for known, is_late in ((few, False), (enough, True)):
        found = advise(known, Situation(known.value), "mixture", TABLE)
        assert (found.is_late, found.recommendation is not None) == (is_late, is_late)
    words = advise(few, Situation(0.17), "mixture", TABLE).words
    assert "too little is known to recommend" in words
    for part in (899, 900):
        known = there(Share.of([part], [1000]))
        late = [
            advise(known, Situation(known.value), name, TABLE).is_late
            for name in ("mixed", "mixed+head")
        ]
        assert late == [part < 900, False]


ELSEWHERE = Recommendation(
    changes=True,
    variant="mixed+head",
    declared="mixture",
    gains=(Gain("late", 5, 0.06, 0.01),),
    measured="2026-11-23",
)


def test_what_is_clearly_better_here_is_recommended_if_seeds_alone_do_not_move_as_much() -> None:
    measured = {"mixture+fnw": Estimate(0.0189, 0.0101, 0.0277), "mixed+head": Estimate(0.01, 0, 1)}
    found = there(with_own_figures("mixture", measured, ELSEWHERE))
    assert (found.changes, found.variant) == (True, "mixture+fnw")
    assert found.words == (
        "train.paradigm: mixture, train.delay: fnw is recommended: expected difference in AUC "
        "against mixture: +.0189 ± .0088 in windows of this line (1 seed)"
    )
    close = Estimate(0.0030, 0.0020, 0.0040)
    assert with_own_figures("mixture", {"stream": close}, None) is None
    sure = Estimate(0.0030, 0.0020, 0.0040, seeds=3)
    assert there(with_own_figures("mixture", {"stream": sure}, None)).variant == "stream"


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


def test_what_this_line_denies_or_finds_clearly_worse_is_not_recommended() -> None:
    level = {"mixed+head": Estimate(0.001, -0.004, 0.006)}
    found = there(with_own_figures("mixture", level, ELSEWHERE))
    assert (found.changes, found.variant, found.settings) == (
        False, "mixture", "train.paradigm: mixture"
    )  # fmt: skip
    assert found.words == "no measured variant clearly beats mixture in windows of this line"
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


def test_summaries_of_before_are_read() -> None:
    gain = {"regime": "late", "seeds": 5, "auc_difference": 0.06, "plus_minus": 0.01}
    stored = {"changes": True, "variant": "mixed+head", "options": {}, "declared": "mixture"}
    found = ToldAdvice.model_validate(
        {"words": "-", "recommendation": {**stored, "expected": [gain], "measured": "2026-11-23"}}
    )
    assert found.recommendation == ELSEWHERE


def test_a_table_is_read_again_and_another_form_is_refused_by_name(tmp_path: Path) -> None:
    path, whole = tmp_path / "regimes.json", json.loads(regimes.TABLE.read_text())
    plain = whole["regimes"]
    with pytest.raises(DataError, match=r"regimes\.json is not a table of measured regimes"):
        read_table(path)
    path.write_text(measured_regimes().model_dump_json(indent=1))
    assert read_table(path) == measured_regimes()

    def refused(says: str, **first: Any) -> None:
        path.write_text(
            json.dumps(
                {**json.loads(regimes.TABLE.read_text()), "regimes": [plain[0] | first, *plain[1:]]}
            )
        )
        with pytest.raises(DataError, match=says):
            read_table(path)

    for key, value in {"completeness": 1.5, "seeds": 0, "variants": [], "aucs": 1}.items():
        refused(key, **{key: value})
    one, *others = plain[0]["variants"]
    refused("names one variant twice", variants=[one, one, *others])
    says = f"'{plain[0]['name']}', {one['variant']}: 1 seeds, not {plain[0]['seeds']}"
    refused(says, variants=[one | {"auc_by_seed": [0.7]}, *others])
    refused(f"'{plain[1]['name']}' measured other variants", variants=[one, *others[1:]])


def variant(*aucs: float) -> MeasuredVariant:
    return MeasuredVariant(variant="stream", auc=sum(aucs) / len(aucs), auc_by_seed=aucs)


def test_differences_are_paired_by_seed() -> None:
    mean, half = difference_of(variant(0.71, 0.72, 0.73), variant(0.70, 0.70, 0.70))
    assert (mean, half) == (pytest.approx(0.02), pytest.approx(4.3027 * 0.01 / 3**0.5))
    assert difference_of(variant(0.7, 0.7), variant(0.6, 0.6))[1] is None
    one = MeasuredVariant(variant="mixed", auc=0.6)
    assert difference_of(variant(0.7, 0.7, 0.7), one) == (pytest.approx(0.1), None)
