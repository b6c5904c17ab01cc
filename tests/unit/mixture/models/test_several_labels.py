"""Several labels in one model: what each learns, and what rows without a label do not change."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.learning import COLUMNS, area, make_towers, minibatch
from support.python_code import printed_json

from forebay.errors import ConfigError
from forebay.mixture.minibatch import LabelRows, Minibatch
from forebay.mixture.score_columns import ScoreColumn

TWO: dict[str, Any] = {"click": {"column": "y"}, "sale": {"column": "z"}}
SERVE = """
import json, sys
import tensorflow as tf
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
found = serve(user=tf.constant(["u"]), item=tf.constant([3], tf.int64),
              price=tf.constant([1.5], tf.float64), tags=tf.constant([["a"]]))
print(json.dumps({name: float(one[0]) for name, one in found.items()}))
"""


def learner(*names: str, labels: dict[str, Any] | None = None, **more: Any) -> Any:
    return make_towers(*names, labels=labels or TWO, columns={**COLUMNS, "z": "int"}, **more)


def two(feed: Any, seed: int, rows: int = 64, said: float = 1.0) -> Minibatch:
    """Random rows whose second label is the opposite of the first, where they say it."""
    made, rng = minibatch(feed, seed, rows), np.random.default_rng(seed)
    waits = rng.exponential(3000, rows).astype(np.float32)
    known = rng.choice([0.0, 1.0], rows).astype(np.float32)
    other = np.where(rng.random(rows) < said, 1 - made.labels, np.nan).astype(np.float32)
    return replace(made, waits=waits, known=known, further=(LabelRows(other, known=known),))


def state(one: Any) -> dict[str, Any]:
    return {name: each.numpy() for name, each in one._seeds[0].variables.items()}


def test_every_paradigm_learns_both() -> None:
    names = ("mixture", "batch", "stream", "batch_then_stream", "mixed")
    one = learner(*names)
    found, first = [column.name for column in one.columns], [*names, "mixture/memory"]
    assert found == [*first, *(f"sale:{name}" for name in first)]
    scores, labels = [], []
    for seed in range(200):
        rows = two("stream" if seed % 2 else "batch", seed, rows=128, said=0.5)
        if seed >= 160:
            scores.append(one.score(rows))
            labels.append(rows.labels)
        of_stream = {"stream", "batch_then_stream"} if seed % 2 else {"batch"}
        assert set(one.learn(rows)) == {"mixture", "mixed", *of_stream}
    scored, truth = np.concatenate(scores), np.concatenate(labels)
    assert (scored.shape, scored.dtype) == ((40 * 128, 12), np.float32)
    for place, name in enumerate(found):
        of = 1 - truth if ScoreColumn.named(name).label else truth
        assert area(of, scored[:, place]) > 0.8, name


def test_rows_that_do_not_say_a_label_are_counted_and_move_nothing_of_its_own() -> None:
    one, rows = learner("stream", "batch"), two("stream", 1, said=0.5)
    one.learn(rows)
    unsaid = int(np.isnan(rows.further[0].labels).sum())
    counted = {name: sum(each) for name, each in one.learnt().items()}
    assert 10 < unsaid < 54
    stream = {"stream": 64, "click:stream": 64, "sale:stream": 64 - unsaid}
    batch = dict.fromkeys(("batch", "click:batch", "sale:batch"), 0)
    assert counted == stream | batch | {"click/label_not_known": 0, "sale/label_not_known": unsaid}
    one = learner("stream", model={"tower": {"hidden": [4]}})
    before = state(one)["stream_tower_weights"]
    one.learn(two("stream", 1, said=0.0))
    moved = (state(one)["stream_tower_weights"] != before)[-10:]  # 4 x 2 weights, 2 biases
    assert moved.tolist() == [True, False] * 4 + [True, False]


@pytest.mark.parametrize("paradigm", ["mixture+head", "stream+fnw", "mixed"])
def test_what_an_unsaid_label_would_have_been_changes_nothing(paradigm: str) -> None:
    """Rows of which nothing is said are as if they were not there, whatever comes before them."""
    left, right = learner(paradigm), learner(paradigm)
    for seed in range(6):
        rows = two("stream" if seed % 2 else "batch", seed, said=0.7)
        further = rows.further[0]
        known = np.where(np.isnan(further.labels), 1 - further.known, further.known)
        other = replace(rows, further=(replace(further, known=known.astype(np.float32)),))
        left.learn(rows)
        right.learn(other)
    for name, values in state(left).items():
        np.testing.assert_array_equal(values, state(right)[name], err_msg=name)
        assert np.isfinite(values).all(), name


def test_weights_are_those_of_the_declared_sum() -> None:
    """A label that counts nearly nothing leaves the other's loss what it is alone."""
    losses = {}
    for weight in (1e-9, 1.0, 3.0):
        one = learner(
            "stream", labels={"a": {"column": "y"}, "b": {"column": "z", "weight": weight}}
        )
        losses[weight] = one.learn(two("stream", 1))["stream"]
    second = losses[1.0] - losses[1e-9]
    assert losses[3.0] == pytest.approx(losses[1e-9] + 3 * second, rel=1e-5)


def test_each_label_has_a_delay_head_of_its_own() -> None:
    labels = {
        "click": {"column": "y", "delay": "none"},
        "sale": {"column": "z"},
        "visit": {"column": "v", "delay": "fnw"},
    }
    columns = {**COLUMNS, "z": "int", "v": "int"}
    one = make_towers("mixture+head", "stream", labels=labels, columns=columns)
    heads = {name for name in state(one) if name.startswith("delay_head")}
    assert heads
    assert all(name.startswith("delay_head_sale_") for name in heads)
    assert [model.delays for model in one._models] == [("none", "head", "fnw"), ("none",) * 3]
    rows = two("batch", 1)
    rows = replace(rows, further=(*rows.further, LabelRows(rows.labels, known=rows.known)))
    before = state(one)
    one.learn(rows)
    after = state(one)
    assert any((before[name] != after[name]).any() for name in heads)


def test_the_head_masks_its_own_label_alone() -> None:
    labels = {"click": {"column": "y", "delay": "none"}, "sale": {"column": "z"}}
    one = learner("stream+head", labels=labels, model={"delay_head": {"q_min": 0.99}})
    one.learn(two("stream", 1))
    masked = {name: sum(left.masked) for name, left in one.left_out().items()}
    assert masked == {"stream+head": 0, "click:stream+head": 0, "sale:stream+head": 64}
    assert sum(one.learnt()["click:stream+head"]) == 64


def test_a_guard_holds_its_own_label_alone() -> None:
    one = learner("stream", "batch")
    paused = one._seeds[0].guards[1].paused
    paused.assign([True] * paused.shape[0])
    assert set(one.guards()) == {"click:stream", "sale:stream"}
    rows = two("stream", 1)
    # All begin alike, and only what learns from here on differs.
    one.learn(two("batch", 2))
    scores = dict(zip([each.name for each in one.columns], one.score(rows).T, strict=True))
    np.testing.assert_array_equal(scores["sale:stream"], scores["sale:batch"])
    assert (scores["stream"] != scores["batch"]).any()
    one.learn(replace(rows, further=(LabelRows(np.zeros(64, np.float32)),)))
    held = {name: sum(left.paused) for name, left in one.left_out().items()}
    assert (held["click:stream"], held["sale:stream"], held["stream"]) == (0, 64, 0)


def test_every_guard_has_variables_of_its_own() -> None:
    """`click` has a sum `usual_observed`, and `click_usual` one that is called `observed`."""
    labels = {"click": {"column": "y"}, "click_usual": {"column": "z"}}
    one = learner("stream", "batch", labels=labels)
    guards = one._seeds[0].guards
    wanted = {id(each) for guard in guards for each in guard.variables.values()}
    assert {id(each) for each in one._seeds[0].resettable.values()} == wanted


@pytest.mark.guarantee(
    "two streams each have one of two labels, and one stream fails",
    "the memory tower answers that label: a source that never has a label does not count as "
    "working for it",
)
def test_a_source_that_never_says_a_label_is_no_sound_source_of_it() -> None:
    """Clicks and sales come by streams of their own: memory answers sales once theirs fails."""
    one = learner("stream", "batch", sources=3)
    one.learn(two("batch", 1))
    clicks = replace(two("stream", 2, said=0.0), sources=np.full(64, 1, np.int32))
    sales = replace(two("stream", 3), sources=np.full(64, 2, np.int32))
    unsaid = np.full(64, np.nan, np.float32)
    sales = replace(sales, labels=unsaid, further=(LabelRows(1 - sales.labels),))
    one.learn(clicks)
    one.learn(sales)
    seen = [guard.seen.numpy().tolist() for guard in one._seeds[0].guards]
    assert seen == [[False, True, False], [False, False, True]]
    assert [state is not None for state in one.guards()["sale:stream"]] == [False, False, True]
    one._seeds[0].guards[1].paused.assign([False, False, True])
    scores = dict(zip([c.name for c in one.columns], one.score(two("stream", 4)).T, strict=True))
    np.testing.assert_array_equal(scores["sale:stream"], scores["sale:batch"])
    assert (scores["stream"] != scores["batch"]).any()


def test_the_warm_start_of_a_mixture_is_batch_then_stream() -> None:
    one = learner("mixture+head", "batch_then_stream")
    one.set_phase("warm_start")
    for seed in range(8):
        one.learn(two("batch", seed, said=0.8))
    scores, names = one.score(two("batch", 9)), [column.name for column in one.columns]
    for label in ("", "sale:"):
        left = scores[:, names.index(f"{label}mixture+head")]
        np.testing.assert_array_equal(left, scores[:, names.index(f"{label}batch_then_stream")])


def test_checkpoints_hold_all_of_it_and_fit_no_other_labels(tmp_path: Path) -> None:
    one, other = learner("mixture+head"), learner("mixture+head")
    for seed in range(4):
        one.learn(two("stream" if seed % 2 else "batch", seed, said=0.6))
    one.save(tmp_path)
    other.load(tmp_path)
    assert other.learnt() == one.learnt()
    for name, values in state(one).items():
        np.testing.assert_array_equal(values, state(other)[name], err_msg=name)
    with pytest.raises(ConfigError, match=r"labels .* there, not here|labels not there"):
        make_towers("mixture+head").load(tmp_path)


def test_the_saved_model_answers_each_label_by_name(tmp_path: Path) -> None:
    one = learner("mixture+head", "stream")
    for seed in range(4):
        one.learn(two("stream" if seed % 2 else "batch", seed))
    one.export(tmp_path)
    found = printed_json(SERVE, os.environ, str(tmp_path))
    outputs = ["click", "sale", "memory_of_click", "memory_of_sale"]
    assert sorted(found) == sorted(outputs)
    assert json.loads((tmp_path / "features.json").read_text())["outputs"] == outputs
    assert found["click"] != found["sale"]


# What the model said after these 40 minibatches while it could learn one label alone.
SCORES_OF_ONE = [0.97154, 0.99138, 0.85717, 0.65997, 0.69893, 0.43767, 0.41781, 0.5066, 0.2372]


def test_one_label_learns_what_it_learnt_before_there_were_several() -> None:
    one = make_towers("mixture+head", "stream+fnw")
    for seed in range(40):
        one.learn(replace(two("stream" if seed % 2 else "batch", seed), further=()))
    scores = one.score(minibatch("stream", 99))
    assert scores[:3].ravel().tolist() == pytest.approx(SCORES_OF_ONE, abs=2e-4)
