"""Towers: learning, determinism, exact checkpoints, refusals, row sums."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.learning import COLUMNS, make_towers, minibatch

from forebay.errors import TrainingError
from forebay.mixture.counting import CountingLearner
from forebay.mixture.kernels.codes import NUMBER_MAX

TWO = ("mixture", "mixed")
ALL = ("mixture", "batch", "stream", "batch_then_stream", "mixed")


def states(learner: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Every variable of a learner by name, optimisers included."""
    found = {f"{m.name}_{k}": v for m in learner._models for k, v in m.variables.items()}
    return {name: variable.numpy() for name, variable in found.items()}


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, values in left.items():
        np.testing.assert_array_equal(values, right[name], err_msg=name)


def feed_of(seed: int) -> Any:
    return "stream" if seed % 2 else "batch"


def test_minibatches_of_any_size_use_one_graph_for_each_feed() -> None:
    learner = make_towers("mixture", "stream")
    for seed, rows in enumerate((1, 64, 7, 3)):
        for feed in ("batch", "stream"):
            batch = minibatch(feed, seed, rows=rows)
            assert learner.score(batch).shape == (rows, 3)
            learner.learn(batch)
    functions = [learner._score, *learner._learn.values()]
    assert [f.experimental_get_tracing_count() for f in functions] == [1, 1, 1]
    assert learner.learn(minibatch("batch", 1, rows=0)) == {}


def test_batch_then_stream_takes_batch_in_the_warm_start_and_stream_later() -> None:
    learner = make_towers("batch_then_stream")
    learner.set_phase("warm_start")
    assert learner.learn(minibatch("stream", 1)) == {}
    assert set(learner.learn(minibatch("batch", 1))) == {"batch_then_stream"}
    learner.set_phase("warm_start_end")
    assert set(learner.learn(minibatch("stream", 1))) == {"batch_then_stream"}
    assert set(learner.learn(minibatch("batch", 1))) == {"batch_then_stream"}
    learner.set_phase("window")
    assert learner.learn(minibatch("batch", 2)) == {}
    assert set(learner.learn(minibatch("stream", 2))) == {"batch_then_stream"}


def test_row_sums_count_rows_that_no_paradigm_takes_too() -> None:
    learner, counting = make_towers("stream", sources=3), CountingLearner(3)
    for seed in range(6):
        batch = minibatch(feed_of(seed), seed, sources=3)
        learner.learn(batch)
        counting.learn(batch)
    assert learner.seen() == counting.seen()


def test_each_paradigm_counts_the_rows_that_it_learnt(tmp_path: Path) -> None:
    learner = make_towers("stream", "mixture", sources=3)
    rows = {"batch": np.zeros(3, np.int64), "stream": np.zeros(3, np.int64)}
    for seed in range(5):
        batch = minibatch(feed_of(seed), seed, sources=3)
        learner.learn(batch)
        rows[batch.feed] += np.bincount(batch.sources, minlength=3)
    both = rows["batch"] + rows["stream"]
    counted = {"stream": rows["stream"].tolist(), "mixture": both.tolist()}
    assert learner.learnt() == counted
    learner.save(tmp_path)
    again = make_towers("stream", "mixture", sources=3)
    again.load(tmp_path)
    assert again.learnt() == counted


def test_scoring_changes_nothing() -> None:
    learner = make_towers(*ALL)
    learner.learn(minibatch("stream", 1))
    before = states(learner)
    learner.score(minibatch("stream", 2))
    assert_same(before, states(learner))


def test_same_seed_and_minibatches_give_the_same_model_and_another_seed_another() -> None:
    one, same, other = (make_towers(*TWO, model={"seed": seed}) for seed in (5, 5, 6))
    for seed in range(8):
        for learner in (one, same, other):
            learner.learn(minibatch(feed_of(seed), seed))
    assert_same(states(one), states(same))
    left, right = states(one), states(other)
    assert any(not np.array_equal(left[name], right[name]) for name in left)


def test_what_is_not_finite_is_refused_by_name() -> None:
    learner = make_towers("stream", "mixed")
    learner.learn(minibatch("stream", 1))
    before, batch = states(learner), minibatch("stream", 2)
    with pytest.raises(TrainingError, match=r"feature price is not finite .* after step 1"):
        learner.learn(replace(batch, dense=np.full_like(batch.dense, np.inf)))
    assert_same(before, states(learner))
    with pytest.raises(TrainingError, match="paradigm stream, mixed is not finite at step 2"):
        learner.learn(replace(batch, labels=np.full_like(batch.labels, np.nan)))
    learner, batch = make_towers("stream"), minibatch("stream", 2)
    huge = replace(batch, dense=np.full_like(batch.dense, 3e38))
    told = "paradigm stream is not finite at step 1 .*largest number is 3e.38 of feature 'price'"
    with pytest.raises(TrainingError, match=told):
        learner.learn(huge)


def test_numbers_as_large_as_rows_may_have_leave_every_model_finite() -> None:
    learner = make_towers(*ALL)
    for seed in range(2):
        batch = minibatch(feed_of(seed), seed)
        batch.dense[:3, 0] = (NUMBER_MAX, -NUMBER_MAX, 1.0)
        learner.learn(batch)
        assert np.isfinite(learner.score(minibatch(feed_of(seed), 9))).all()


@pytest.mark.parametrize(
    "features",
    [
        {"price": {"encode": "numeric"}},
        {"tags": {"encode": "hash", "buckets": 9}},
        {f"f{n}": {"encode": "hash", "buckets": 9, "column": "user"} for n in range(30)},
    ],
)
def test_other_shapes_of_features_train(features: dict[str, Any]) -> None:
    learner, plain = make_towers("mixture", features=features), minibatch("stream", 1)
    lists = plain.lists if "tags" in features else ()
    dense = plain.dense if "price" in features else plain.dense[:, :0]
    ids = np.ones((len(plain), sum(name.startswith("f") for name in features)), np.int64)
    lists = tuple((splits, values % 9) for splits, values in lists)
    batch = replace(plain, dense=dense, ids=ids, lists=lists)
    assert np.isfinite(learner.learn(batch)["mixture"])
    assert learner.score(batch).shape == (64, 2)
    assert set(COLUMNS) >= set(learner._layout.types)
