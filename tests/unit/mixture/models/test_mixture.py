"""Primus Algorithm 1: which minibatch moves which tower and which tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.learning import make_towers, minibatch


def parts(learner: Any) -> dict[str, Any]:
    """All variables of the mixture, grouped by the part that they belong to."""
    variables = learner._models[0].variables
    return {name: variable.numpy() for name, variable in variables.items()}


def moved(learner: Any, feed: Any, seed: int = 1) -> set[str]:
    """Parts that one minibatch moves: embeddings, memory_embeddings, memory, adapt."""
    before = parts(learner)
    learner.learn(minibatch(feed, seed))
    after = parts(learner)
    names = {name for name in before if not np.array_equal(before[name], after[name])}
    known = ("memory_embeddings", "embeddings", "memory", "adapt")
    return {next(part for part in known if name.startswith(part)) for name in names}


@pytest.mark.parametrize(
    ("embeddings", "by_batch", "by_stream"),
    [
        ("shared", {"memory", "embeddings"}, {"adapt", "embeddings"}),
        ("separate", {"memory", "memory_embeddings"}, {"adapt", "embeddings"}),
        ("memory_only", {"memory", "embeddings"}, {"adapt"}),
        ("adapt_only", {"memory"}, {"adapt", "embeddings"}),
    ],
)
@pytest.mark.parametrize("stop_gradient", ["output", "theta_only"])
def test_who_moves(
    embeddings: str, by_batch: set[str], by_stream: set[str], stop_gradient: str
) -> None:
    spec = {"mixture": {"embeddings": embeddings, "stop_gradient": stop_gradient}}
    learner = make_towers("mixture", model=spec)
    assert moved(learner, "batch") == by_batch
    assert moved(learner, "stream") == by_stream
    learner.set_phase(warm_start=True)
    assert moved(learner, "batch", 2) == by_batch
    assert moved(learner, "stream", 2) == by_stream


def test_without_gain_the_adapt_tower_is_the_stream_tower() -> None:
    spec = {"mixture": {"embeddings": "separate", "gain": 0}}
    learner = make_towers("mixture", "stream", model=spec)
    for seed in range(20):
        batch = minibatch("stream" if seed % 2 else "batch", seed)
        scores = learner.score(batch)
        np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=1e-4)
        learner.learn(batch)


def test_gain_lets_the_memory_tower_speak() -> None:
    batch = minibatch("stream", 3)
    quiet, loud = (
        make_towers("mixture", model={"mixture": {"gain": gain}}).score(batch) for gain in (0, 5)
    )
    assert not np.allclose(quiet, loud)


@pytest.mark.parametrize("memory_output", ["logit", "hidden", "both"])
@pytest.mark.parametrize("hidden", [[], [8, 4]])
def test_the_adapt_tower_reads_what_is_declared(memory_output: str, hidden: list[int]) -> None:
    tower = {"hidden": hidden}
    spec = {"mixture": {"memory_output": memory_output, "memory_tower": tower}}
    learner = make_towers("mixture", model=spec)
    width = 1 + 2 * 4 + 8  # price; user and tags; item
    extra = {"logit": 1, "hidden": (hidden or [width])[-1]}
    extra["both"] = extra["logit"] + extra["hidden"]
    inputs = width + extra[memory_output]
    wanted = inputs * 64 + 64 + 64 * 32 + 32 + 32 + 1
    assert parts(learner)["adapt_weights"].shape == (wanted,)
    assert np.isfinite(learner.learn(minibatch("stream", 1))["mixture"])


def test_theta_only_lets_the_stream_gradient_through_into_shared_rows() -> None:
    def rows_after(stop_gradient: str) -> Any:
        spec = {"mixture": {"gain": 1.0, "stop_gradient": stop_gradient}}
        learner = make_towers("mixture", model=spec)
        learner.learn(minibatch("stream", 1))
        return parts(learner)["embeddings_table0"]

    assert not np.allclose(rows_after("output"), rows_after("theta_only"), atol=1e-6)
