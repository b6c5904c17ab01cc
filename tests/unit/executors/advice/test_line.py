"""Advice from windows of a line: whose labels count, which rows, and when to warn."""

from __future__ import annotations

from typing import Any

import pytest
from support.links import judgement
from support.model_lines import record_link
from support.stages import pipeline
from support.there import there

from forebay.executors.advice import line as module
from forebay.executors.advice.line import (
    advice_on_windows,
    late_label_warnings,
    line_gains,
    line_warnings,
)
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.mixture.metrics.estimate import SEED_NOISE
from forebay.mixture.metrics.figures import Difference


def window(fresh: int, complete: int, stream: int = 50, batch: int = 100, **more: Any) -> Judgement:
    return judgement(
        sources={
            "a": {"feed": "batch", "trained_rows": batch},
            "ab": {"feed": "stream", "trained_rows": stream},
        },
        label_completeness={"fresh_positives": fresh, "complete_positives": complete},
        **more,
    )


LATE = [window(40, 100), window(44, 100), window(0, 0)]


def spec(**train: Any) -> Any:
    return pipeline(("a", "ab"), train={"paradigm": "mixture", **train})


def test_windows_are_added_up() -> None:
    found = there(advice_on_windows(spec(), LATE))
    assert found.known is not None
    assert (found.known.part, found.known.whole, found.is_late) == (84, 200, True)
    assert found.stream_share == 0.5
    value = found.told()
    assert value.incomplete_labels
    assert there(value.recommendation).variant.endswith("+head")
    assert value.words == found.words
    assert found.words.startswith("42% (35%-48%) of 200 positives are known when the stream row is")
    assert "the others train as negatives, and mixture does not correct that" in found.words


def test_who_is_warned() -> None:
    assert len(late_label_warnings(spec(), LATE)) == 1
    corrected = {"paradigm": "mixture", "delay": "head"}
    (warning,) = late_label_warnings(spec(compare=[corrected]), LATE)
    assert "mixture does not correct that" in warning
    assert late_label_warnings(spec(**corrected), LATE) == []
    assert late_label_warnings(spec(accept=["incomplete_labels"]), LATE) == []
    assert late_label_warnings(spec(paradigm="batch"), LATE) == []
    assert late_label_warnings(spec(), [window(95, 100)]) == []
    assert late_label_warnings(spec(), [window(1, 10)]) == []  # too few to say
    assert late_label_warnings(spec(), [window(0, 0)]) == []
    assert late_label_warnings(spec(), []) == []


@pytest.mark.parametrize("warm_start", [None, "2026-02-01"])
def test_who_goes_on_with_the_stream_after_a_warm_start_is_warned(warm_start: str | None) -> None:
    train = {"paradigm": "batch_then_stream", "warm_start": warm_start}
    (warning,) = late_label_warnings(spec(**train), LATE)
    assert "and batch_then_stream does not correct that" in warning
    assert "train.delay: " in warning
    assert "is recommended: expected difference in AUC against batch_then_stream" in warning
    assert late_label_warnings(spec(**train, delay="head"), LATE) == []
    found = there(advice_on_windows(spec(**train), LATE))
    assert found.recommendation is not None
    assert warm_start or not found.recommendation.variant.startswith("batch_then_stream")


def test_counting_learns_no_labels() -> None:
    assert advice_on_windows(pipeline(("a", "ab"), model={"kind": "count"}), LATE) is None


@pytest.mark.parametrize(("batch", "share"), [(0, None), (10, 1.0), (1000, 0.05)])
def test_the_share_of_events_in_the_stream(batch: int, share: float | None) -> None:
    assert there(advice_on_windows(spec(), [window(100, 100, batch=batch)])).stream_share == share


def test_a_pipeline_without_a_stream_is_told_of_none() -> None:
    batch = judgement(sources={"a": {"feed": "batch", "trained_rows": 100}})
    assert advice_on_windows(spec(paradigm="batch"), [batch]) is None
    assert advice_on_windows(spec(), [window(0, 0, stream=0)]) is not None


@pytest.mark.parametrize("paradigm", ["batch", "stream", "batch_then_stream", "mixed", "mixture"])
@pytest.mark.parametrize("known", [20, 50, 70, 85, 95])
def test_whoever_takes_the_advice_is_advised_and_warned_no_more(paradigm: str, known: int) -> None:
    windows = [window(known, 100), window(known, 100)]
    for warm_start in (None, "2026-02-01"):
        declared = spec(paradigm=paradigm, warm_start=warm_start)
        found = there(there(advice_on_windows(declared, windows)).recommendation)
        taken, _, delay = found.variant.partition("+")
        train = {"paradigm": taken, "delay": delay or "none", "warm_start": warm_start}
        corrected = pipeline(("a", "ab"), train=train)
        again = there(there(advice_on_windows(corrected, windows)).recommendation)
        assert (again.changes, late_label_warnings(corrected, windows)) == (False, [])


def _better(a: str, b: str) -> Difference:
    figures = {"value": 0.05, "low": 0.04, "high": 0.06, "seeds": 3}
    return Difference.model_validate({"a": a, "b": b, "differ": True, "words": ""} | figures)


def _judged(*gains: float, complete: bool = True, seeds: int = 1) -> list[Judgement]:
    """Windows in which `mixture+fnw` is better by so much."""

    def answer(auc: float | None) -> dict[str, Any]:
        return {"auc": auc, "positives": 50, "rows": 200, "seeds": seeds}

    return [
        window(
            *(40, 100),
            event={
                "complete": complete,
                "answers": {
                    "mixture": answer(0.7),
                    "mixture+fnw": answer(0.7 + gain),
                    "mixture/memory": answer(0.9),
                    "stream": answer(None),
                },
            },
        )
        for gain in gains
    ]


def test_what_the_line_s_windows_have_measured_goes_first() -> None:
    windows = _judged(0.02, 0.022, 0.018)
    gains = line_gains(spec(), windows)
    assert list(gains) == ["mixture+fnw"]
    assert gains["mixture+fnw"].value == pytest.approx(0.02)
    reach = ((4.3027 * 0.002) ** 2 / 3 + (1.96 * SEED_NOISE) ** 2) ** 0.5
    assert gains["mixture+fnw"].reach == pytest.approx(reach, rel=1e-4)
    found = there(there(advice_on_windows(spec(), windows)).recommendation)
    assert (found.changes, found.variant) == (True, "mixture+fnw")
    assert found.words.endswith(": +.0200 ± .0090 in windows of this line (1 seed)")
    assert line_gains(spec(), [*_judged(0.02, 0.022), *_judged(0.018, complete=False)]) == {}
    assert line_gains(spec(paradigm="batch"), windows) == {}, "it was not trained"


def test_a_verdict_on_the_range_is_not_denied_by_earlier_windows() -> None:
    verdict = _better("mixture", "mixture+fnw")
    found = advice_on_windows(spec(), _judged(0.02, 0.022, 0.018), "", [verdict])
    assert there(there(found).recommendation).variant != "mixture+fnw"
    verdict = verdict.model_copy(update={"low": -0.06})  # on few rows they do not differ
    found = advice_on_windows(spec(), _judged(0.02, 0.022, 0.018), "", [verdict])
    assert there(there(found).recommendation).variant == "mixture+fnw"
    many = {"value": 0.001, "low": -0.001, "high": 0.003}
    verdict = verdict.model_copy(update=many)
    found = advice_on_windows(spec(), _judged(0.02, 0.022, 0.018), "", [verdict])
    assert there(there(found).recommendation).variant != "mixture+fnw"


def test_windows_say_nothing_of_seeds() -> None:
    """The same models answer in all of them: what never changes may still be theirs."""
    windows = _judged(0.0003, 0.0003, 0.0003, seeds=3)
    assert not line_gains(spec(), windows)["mixture+fnw"].is_clear()


def test_a_judgement_with_positives_that_were_taken_back_is_read() -> None:
    assert there(there(advice_on_windows(spec(), [window(120, 100)])).known).value == 1.0


def test_a_variant_that_is_no_longer_declared_is_judged_by_its_name() -> None:
    found = there(advice_on_windows(spec(), LATE, "", [_better("batch", "mixture")]))
    assert there(found.recommendation).variant == "batch"
    again = there(advice_on_windows(spec(), LATE, "", [_better("batch", "stream")]))
    assert again == advice_on_windows(spec(), LATE)


def test_variants_that_are_the_same_to_a_label_are_not_recommended_over_each_other() -> None:
    labels = {"click": {"column": "n", "delay": "none"}, "sale": {"column": "n"}}
    both = pipeline(
        ("a", "ab"),
        dataset={"label": None, "named_labels": labels},
        train={"paradigm": "mixture", "delay": "head", "compare": [{"paradigm": "mixture"}]},
    )
    found = advice_on_windows(both, LATE, "", [_better("mixture", "mixture+head")])
    assert found == advice_on_windows(both, LATE)


SPEC = pipeline(("a", "ab"))
SOURCES = {"a": {"feed": "batch", "trained_rows": 9}, "ab": {"feed": "stream", "trained_rows": 9}}


def judged(chain: ModelChain, key: str, fresh: int, complete: int) -> None:
    link = record_link(chain, key, {"a": 9})
    counts = {"fresh_positives": fresh, "complete_positives": complete}
    chain.judge(link, judgement(link, sources=SOURCES, label_completeness=counts))


def test_windows_of_a_line_are_added_up(chain: ModelChain) -> None:
    assert line_warnings(SPEC, chain) == []
    judged(chain, "2026-03-01", 30, 60)
    judged(chain, "2026-03-02", 0, 0)  # its labels are still to come
    record_link(chain, "2026-03-03", {"a": 9})  # nobody has judged it
    (warning,) = line_warnings(SPEC, chain)
    assert warning.startswith("50% (37%-62%) of 60 positives are known when the stream row is")
    judged(chain, "2026-03-04", 990, 1000)
    assert line_warnings(SPEC, chain) == []


def test_only_the_last_windows_count(chain: ModelChain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOWS_MAX", 1)
    for day in range(1, 4):
        judged(chain, f"2026-03-0{day}", 90 if day == 1 else 100, 100)
    judged(chain, "2026-03-04", 85, 100)
    (warning,) = line_warnings(SPEC, chain) or [""]
    kept = SPEC.dataset.label_horizon + 1
    assert (kept, warning) == (2, "")
    judged(chain, "2026-03-05", 85, 100)
    assert line_warnings(SPEC, chain)[0].startswith("85% ")
