"""What serves: the declared variant, unless event scores say that another one is better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.stages import pipeline

from forebay.config.specs.jobs import PublishSpec
from forebay.executors.judging.event_figures import EventFigures
from forebay.executors.judging.event_rows import EventRows
from forebay.executors.judging.gate import GateDecision, decide

VARIANTS = ["mixture", "stream", "mixed"]
COLUMNS = ("mixture", "stream", "mixed", "mixture/memory")
SEEDS = ("", "@1", "@2")


def window(
    key: str,
    better: str = "",
    rows: int = 600,
    *,
    one_class: bool = False,
    all_here: bool = True,
    seeds: int = 3,
    signal: float = 3.0,
    shift: float = 0.0,
) -> EventFigures:
    """All columns know as much, but for the one that is better. shift: of its log odds."""
    random = np.random.default_rng(len(key) + rows)
    labels = np.zeros(rows) if one_class else (random.random(rows) < 0.3).astype(np.float64)
    scores, noise = np.empty((rows, len(COLUMNS)), np.float32), random.normal(size=rows)
    for place, name in enumerate(COLUMNS):
        odds = labels * (signal if name == better else 1.0) + noise - 1.6
        scores[:, place] = 1 / (1 + np.exp(-odds - (shift if name == better else 0.0)))
    made = EventRows(
        window=key,
        columns=tuple(f"{name}{seed}" for seed in SEEDS[:seeds] for name in COLUMNS),
        labels=labels.astype(np.float32),
        sources=np.zeros(rows, np.int32),
        scores=np.tile(scores, seeds),
        slices={},
        rows=rows,
        gone=0,
        before=0,
        left_out=0,
        all_here=all_here,
    )
    return EventFigures.of(made, pipeline(("a",)))


def gate(
    windows: list[EventFigures], serving: str | None = None, half_life: int = 7, **spec: Any
) -> GateDecision:
    declared = PublishSpec.model_validate({"when": "gate", "min_rows": 500} | spec)
    return decide(declared, VARIANTS, windows, serving, half_life)


@pytest.mark.parametrize("metric", ["auc", "log_loss", "normalised_entropy"])
def test_a_significantly_better_variant_serves(metric: str) -> None:
    found = gate([window("w", "stream")], metric=metric)
    assert (found.variant, found.declared) == ("stream", "mixture")
    assert found.words.startswith(
        f"stream serves: at event time, by {metric}, stream is better than mixture (difference 0."
    )
    assert (found.windows, found.rows) == (["w"], 600)


def test_the_declared_one_serves_unless_another_is_significantly_better() -> None:
    assert gate([window("w")]).words == "mixture serves: it is the best at event time, by auc"
    near = gate([window("w", "stream", 16)], min_rows=2)
    assert near.variant == "mixture"
    assert "stream and mixture do not differ" in near.words
    best = gate([window("w", "mixture")])
    assert best.words == "mixture serves: it is the best at event time, by auc"


def test_a_tower_that_does_not_answer_never_serves() -> None:
    assert gate([window("w", "mixture/memory")]).variant == "mixture"


@pytest.mark.parametrize(
    "windows",
    [
        [],
        [window("w", "stream", 499)],
        [window("w", "stream", one_class=True)],
        [window("w", "stream", all_here=False)],
    ],
    ids=["nothing", "few rows", "one class", "partial"],
)
def test_too_little_evidence_leaves_what_is_declared(windows: list[EventFigures]) -> None:
    found = gate(windows)
    assert (found.variant, found.windows) == ("mixture", [])
    assert found.words.startswith("mixture serves as declared: the gate needs 500 judged rows")
    assert "train.seeds" not in found.words, "three are trained, or nobody can tell yet"


@pytest.mark.parametrize("metric", ["auc", "log_loss", "normalised_entropy"])
def test_newer_windows_count_more(metric: str) -> None:
    stream = [window(f"a{number}", "stream") for number in range(7)]
    mixed = [window(f"b{number}", "mixed") for number in range(7)]
    found = gate([*stream, *mixed, window("now", all_here=False)], metric=metric)
    assert (found.variant, found.rows, len(found.windows)) == ("mixed", 14 * 600, 14)
    assert gate([*mixed, *stream], metric=metric).variant == "stream"


@pytest.mark.parametrize("metric", ["auc", "log_loss", "normalised_entropy"])
def test_a_rival_without_hope_is_benched_after_three_windows(metric: str) -> None:
    windows = [window(f"w{number}", "mixture") for number in range(3)]
    found = gate(windows, metric=metric)
    assert found.benched == ["stream", "mixed"]
    assert found.words.endswith("; benched, as clearly worse than mixture: stream, mixed")
    assert gate(windows[:2], metric=metric).benched == []
    level = gate([window(f"w{number}") for number in range(3)], metric=metric)
    assert (level.benched, "benched" in level.words) == ([], False)
    # What serves is the measure, not what is declared.
    better = gate([window(f"w{number}", "stream") for number in range(3)], metric=metric)
    assert (better.variant, better.benched) == ("stream", ["mixture", "mixed"])


def test_windows_that_say_nothing_make_others_older_and_48_are_looked_at() -> None:
    level, better = window("a"), window("b", "stream")
    silent = [window(f"c{number}", one_class=True) for number in range(7)]
    near, far = (gate([level, *some, better], half_life=1) for some in ([], silent))
    apart = [float(each.words.partition("difference ")[2].split(",")[0]) for each in (near, far)]
    assert apart[1] > apart[0] * 1.4
    many = [window(f"w{number}") for number in range(60)]
    assert gate(many).windows == [each.window for each in many[12:]]


def test_what_serves_stays_while_it_is_ahead_of_the_declared_one() -> None:
    """It needs no proof each time: at the edge of what is clear it would come and go."""
    near = [window("w", "stream", 16)]
    assert gate(near, min_rows=2).variant == "mixture"
    kept = gate(near, "stream", min_rows=2)
    assert (kept.variant, kept.words) == (
        "stream",
        "stream serves: it is the best at event time, by auc",
    )
    assert gate([window("w", "mixture")], "stream").variant == "mixture"
    assert gate([window("w")], "stream").variant == "mixture", "it is not ahead"
    assert gate([window("w", "mixed")], "stream").variant == "mixed"
    assert gate([window("w", "stream", 499)], "stream").variant == "mixture", "too little is known"


def test_labels_that_take_longer_than_48_windows_are_waited_for() -> None:
    known = [replace(window("a", "stream"), window=f"a{number}") for number in range(50)]
    found = gate([*known, *[window("b", all_here=False)] * 72], half_life=24)
    assert (found.variant, found.windows) == ("stream", [each.window for each in known[2:]])


def test_an_old_window_s_calibration_counts_less() -> None:
    wrong = [window(f"a{number}", "stream", shift=4.0) for number in range(7)]
    right = [window(f"b{number}", "stream") for number in range(14)]
    assert "stream is left out" in gate([*right, *wrong]).words
    assert gate([*wrong, *right]).variant == "stream"


def test_a_window_counts_half_after_a_half_life() -> None:
    two = [window("a"), window("b", "stream")]
    whole, half = (gate(two, half_life=each).words for each in (10**6, 1))
    apart = [float(each.partition("difference ")[2].split(",")[0]) for each in (whole, half)]
    assert apart[1] == pytest.approx(apart[0] * 2 * 2 / 3, abs=0.0002)


@pytest.mark.parametrize("metric", ["auc", "log_loss", "normalised_entropy"])
def test_what_is_better_in_one_window_of_several_does_not_serve(metric: str) -> None:
    spec = {"metric": metric, "min_rows": 4 * 600}
    every = [window(f"w{number}", "stream") for number in range(4)]
    assert gate(every, **spec).variant == "stream"
    once = [every[0], *(window(f"w{number}") for number in range(1, 4))]
    assert gate(once[:1], metric=metric).variant == "stream"
    found = gate(once, **spec)
    assert found.variant == "mixture"
    assert "stream and mixture do not differ" in found.words


def test_what_serves_stays_until_something_is_better_than_that() -> None:
    level, stream = [window("w")], [window("w", "stream")]
    assert gate(level, "stream", against="served").variant == "stream"
    assert gate(level, "stream").variant == "mixture"
    assert gate(stream, "mixed", against="served").variant == "stream"
    assert gate([], "mixed", against="served").words.startswith("mixed serves as before: the gate")
    assert gate([], "gone", against="served").variant == "mixture"
    assert gate([], None, against="served").variant == "mixture"


def test_a_pipeline_that_compares_nothing_has_nothing_to_choose() -> None:
    found = decide(PublishSpec.model_validate({"when": "gate"}), ["mixture"], [window("w")])
    assert found.words == "mixture serves: nothing else is trained"


def test_one_seed_takes_three_windows_and_more_than_seeds_move() -> None:
    few = [window(f"w{number}", "stream", seeds=1) for number in range(2)]
    found = gate(few)
    assert (found.variant, found.windows) == ("mixture", [])
    assert found.words == (
        "mixture serves as declared: the gate needs 500 judged rows (job.publish.min_rows) of 3 "
        "windows (train.seeds is below 3), and windows with all their labels and both classes have "
        "1,200 of 2"
    )
    found = gate([*few, window("w2", "stream", seeds=1)])
    assert (found.variant, len(found.windows)) == ("stream", 3)
    assert "stream is better than mixture on these rows only (difference 0." in found.words
    near = [window(f"w{number}", "stream", seeds=1, signal=1.01) for number in range(3)]
    found = gate(near)
    assert found.variant == "mixture"
    assert "do not differ by more than another seed may move (difference 0.00" in found.words
    assert gate(near, metric="log_loss").variant == "stream", "what seeds move was measured of AUCs"


def test_what_expects_twice_the_positives_does_not_serve() -> None:
    assert gate([window("w", "stream", shift=3.0)]).words == (
        "mixture serves: it is the best at event time, by auc; stream is left out: calibration 2.67"
    )
    declared = [window("w", "mixture", shift=3.0)]
    assert gate(declared, against="served").variant == "mixture", "what is declared stays"
    found = gate([window("w", "stream", shift=3.0)], "stream", against="served")
    assert found.variant == "mixture", "it serves no longer"
    assert found.words.endswith("; stream is left out: calibration 2.67")
