"""The guard: minibatches in TensorFlow against rows one by one, and what the rule promises."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.learning import THREADS

from forebay.mixture.label_guard import GuardState
from forebay.mixture.tensorflow_start import start_tensorflow

SEEDS = st.integers(0, 2**32 - 1)


@cache
def guard() -> Any:
    """One guard and its traced function for all examples."""
    start_tensorflow(THREADS)
    import tensorflow as tf

    from forebay.mixture.models.late.guard import Guard

    one = Guard()
    vector = tf.TensorSpec([None], tf.float32)
    return one, tf.function(one.observe, input_signature=[vector, vector], autograph=False)


def rows(rng: np.random.Generator, count: int, rate: float, health: float = 1.0) -> Any:
    """(labels, expected): rows whose tower is right, and of whose positives a part is known."""
    expected = rng.beta(20 * rate, 20 * (1 - rate), count).astype(np.float32)
    return (rng.random(count) < expected * health).astype(np.float32), expected


def row_by_row(state: GuardState, labels: Any, expected: Any) -> GuardState:
    for label, probability in zip(labels.tolist(), expected.tolist(), strict=True):
        state = state.with_row(label, probability)
    return state.decided()


@given(SEEDS, st.lists(st.integers(1, 300), min_size=1, max_size=12), st.floats(0.02, 0.6))
@settings(max_examples=40, deadline=None)
def test_minibatches_give_what_rows_give(seed: int, sizes: list[int], rate: float) -> None:
    one, observe = guard()
    for variable in one.variables.values():
        variable.assign(variable * 0 if variable.dtype != bool else variable & ~variable)
    rng, state = np.random.default_rng(seed), GuardState()
    for size in sizes:
        labels, expected = rows(rng, size, rate, rng.choice([0.0, 0.5, 1.0]))
        state = row_by_row(state, labels, expected)
        assert bool(observe(labels, expected).numpy()) == state.paused
        found = asdict(one.state())
        assert found == {
            name: pytest.approx(each, rel=1e-4) for name, each in asdict(state).items()
        }


def test_both_pause_and_resume_alike() -> None:
    one, observe = guard()
    for variable in one.variables.values():
        variable.assign(variable * 0 if variable.dtype != bool else variable & ~variable)
    rng, state, paused = np.random.default_rng(5), GuardState(), []
    for step in range(90):
        labels, expected = rows(rng, 256, 0.12, 0.0 if 40 <= step < 70 else 1.0)
        state = row_by_row(state, labels, expected)
        observe(labels, expected)
        assert one.state().paused == state.paused
        paused.append(state.paused)
    assert one.state().pauses == state.pauses == 1
    assert not any(paused[:41])
    assert all(paused[48:70])
    assert not any(paused[75:])


def fed(
    state: GuardState, rng: np.random.Generator, rate: float, health: float, positives: int
) -> Any:
    """After so many expected positives: the state, and how many it took to pause; None if never."""
    took = None
    for done in range(0, round(positives / rate), 64):
        state = row_by_row(state, *rows(rng, 64, rate, health))
        if state.paused and took is None:
            took = (done + 64) * rate
    return state, took


@pytest.mark.parametrize("rate", [0.02, 0.12, 0.4])
@pytest.mark.parametrize("usual", [1.0, 0.4])
def test_it_is_as_fast_at_any_rate_and_whatever_is_usual(rate: float, usual: float) -> None:
    """That two fifths of the positives are known is no fault where it is so always."""
    rng = np.random.default_rng(7)
    state, took = fed(GuardState(), rng, rate, usual, 1_500)
    assert took is None
    assert state.usual_observed / state.usual_expected == pytest.approx(usual, rel=0.25)
    state, took = fed(state, rng, rate, 0.0, 400)
    assert took is not None
    assert 20 < took * usual < 90
    standing = state.usual_expected
    state, _ = fed(state, rng, rate, 0.0, 200)
    assert state.paused
    assert state.usual_expected == standing
    state, _ = fed(state, rng, rate, usual, 250)
    assert not state.paused


def test_nothing_is_paused_before_it_is_known_what_is_usual() -> None:
    rng = np.random.default_rng(1)
    state, took = fed(GuardState(), rng, 0.1, 0.0, 350)
    assert (took, state.pauses) == (None, 0)


def test_the_first_labels_of_a_silent_stream_are_no_fault() -> None:
    """A stream may begin without any label: nothing is usual yet, however long that takes."""
    rng, state = np.random.default_rng(3), GuardState()
    for minibatch in range(80):
        known = 0.0 if minibatch < 60 else 0.4
        state = row_by_row(state, *rows(rng, 500, 0.5, known))
        assert (state.pauses, state.paused) == (0, False), minibatch
