"""Primus Algorithm 1: which minibatch moves which tower and which tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.learning import make_towers, minibatch

from forebay.config.specs.models import MixtureSpec


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
    known = ("memory_embeddings", "embeddings", "memory", "adapt", "inputs")
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
@pytest.mark.parametrize(
    ("mode", "stop_gradient"), [("measured", "output"), ("paper", "theta_only")]
)
def test_who_moves(
    embeddings: str, by_batch: set[str], by_stream: set[str], mode: str, stop_gradient: str
) -> None:
    spec = {"mode": mode, "embeddings": embeddings, "stop_gradient": stop_gradient}
    learner = make_towers("mixture", model={"mixture": spec})
    inputs = {"inputs"} if mode == "measured" else set()
    assert moved(learner, "batch") == by_batch
    assert moved(learner, "stream") == by_stream | inputs
    learner.set_phase("warm_start")
    early = by_batch if mode == "paper" else by_batch | by_stream
    assert moved(learner, "batch", 2) == early
    assert moved(learner, "stream", 2) == (by_stream if mode == "paper" else set())
    learner.set_phase("warm_start_end")
    assert moved(learner, "batch", 3) == early
    assert moved(learner, "stream", 3) == by_stream, "with its memory inputs off"


def test_the_adapt_tower_may_learn_batch_rows_too() -> None:
    learner = make_towers("mixture", model={"mixture": {"adapt_learns": "both"}})
    both = {"memory", "memory_embeddings", "adapt", "embeddings", "inputs"}
    assert moved(learner, "batch") == both
    alone = {"memory", "memory_embeddings"}
    assert moved(make_towers("mixture"), "batch") == alone
    assert moved(make_towers("mixture+head"), "batch") == both, "of what is late batch rows tell"
    told = {"mixture": {"adapt_learns": "stream"}}
    assert moved(make_towers("mixture+head", model=told), "batch") == alone


def test_paper_is_algorithm_1_with_settings_of_its_own() -> None:
    paper, measured = MixtureSpec(mode="paper"), MixtureSpec()
    assert (paper.embeddings, paper.memory_inputs, paper.gain) == ("shared", "random", 1.0)
    own = (measured.embeddings, measured.memory_inputs, measured.gain)
    assert own == ("separate", "zero", 0.05)


def test_after_the_warm_start_the_adapt_tower_is_the_batch_tower_to_the_last_bit() -> None:
    learner = make_towers("mixture", "batch_then_stream")
    learner.set_phase("warm_start")
    for seed in range(30):
        if seed == 20:
            learner.set_phase("warm_start_end")
        learner.learn(minibatch("stream" if seed % 5 == 4 else "batch", seed, rows=50 + seed))
    learner.set_phase("window")
    mixture, single = (model.variables for model in learner._models)
    for part in ("table0", "table1", "sums0", "sums1"):
        np.testing.assert_array_equal(
            mixture[f"embeddings_{part}"].numpy(), single[f"embeddings_{part}"].numpy()
        )
    for part in ("weights", "adam_first", "adam_second"):
        np.testing.assert_array_equal(
            mixture[f"adapt_{part}"].numpy(), single[f"tower_{part}"].numpy()
        )
    for rows in (1, 7, 64):
        scores = learner.score(minibatch("stream", rows, rows=rows))
        # Kernels that TensorFlow fuses in one tower and not in the other may round a last bit.
        np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=2.0**-23)
    learner.learn(minibatch("stream", 99))
    scores = learner.score(minibatch("stream", 100))
    assert (scores[:, 0] != scores[:, 1]).any()


def test_without_gain_the_adapt_tower_is_the_stream_tower() -> None:
    spec = {"mixture": {"embeddings": "separate", "gain": 0}}
    learner = make_towers("mixture", "stream", model=spec)
    for seed in range(8):
        batch = minibatch("stream" if seed % 2 else "batch", seed)
        scores = learner.score(batch)
        np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=1e-4)
        learner.learn(batch)


@pytest.mark.parametrize(
    ("memory_output", "hidden", "memory_inputs", "memory_embeddings"),
    [
        ("logit", [8, 4], "zero", False),
        ("logit", [], "zero", True),
        ("hidden", [8, 4], "zero", True),
        ("hidden", [], "random", False),
        ("both", [8, 4], "random", True),
        ("both", [], "zero", False),
    ],
)
def test_the_adapt_tower_reads_what_is_declared(
    memory_output: str, hidden: list[int], memory_inputs: str, *, memory_embeddings: bool
) -> None:
    spec = {"memory_output": memory_output, "memory_tower": {"hidden": hidden}}
    spec |= {"memory_inputs": memory_inputs, "memory_embeddings": memory_embeddings}
    learner = make_towers("mixture", model={"mixture": spec})
    width = 1 + 2 * 4 + 8  # price; user and tags; item
    widths = {"logit": 1, "hidden": (hidden or [width])[-1]}
    widths["both"] = widths["logit"] + widths["hidden"]
    extra = widths[memory_output] + memory_embeddings * (width - 1)
    rest = 64 + 64 * 32 + 32 + 32 + 1
    drawn = extra if memory_inputs == "random" else 0
    assert parts(learner)["adapt_weights"].shape == ((width + drawn) * 64 + rest,)
    if memory_inputs == "zero":
        assert parts(learner)["inputs_weights"].shape == (extra * 64,)
    learner.set_phase("warm_start")
    assert np.isfinite(learner.learn(minibatch("batch", 1))["mixture"])
    learner.set_phase("window")
    assert np.isfinite(learner.learn(minibatch("stream", 1))["mixture"])


def test_theta_only_lets_the_stream_gradient_through_into_shared_rows() -> None:
    def rows_after(stop_gradient: str) -> Any:
        spec = {"mixture": {"mode": "paper", "gain": 1.0, "stop_gradient": stop_gradient}}
        learner = make_towers("mixture", model=spec)
        learner.learn(minibatch("stream", 1))
        return parts(learner)["embeddings_table0"]

    assert not np.allclose(rows_after("output"), rows_after("theta_only"), atol=1e-6)
