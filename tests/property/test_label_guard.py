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

SOURCES = 3
SEEDS = st.integers(0, 2**32 - 1)


@cache
def guard() -> Any:
    """One guard and its traced function for all examples."""
    start_tensorflow(THREADS)
    import tensorflow as tf

    from forebay.mixture.models.late.guard import Guard

    one = Guard(SOURCES)
    vector, places = tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int32)
    return one, tf.function(one.observe, input_signature=[vector, vector, places], autograph=False)


def reset(one: Any) -> None:
    for variable in one.variables.values():
        variable.assign(variable * 0 if variable.dtype != bool else variable & ~variable)


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
def test_minibatches_give_what_rows_of_each_source_give(
    seed: int, sizes: list[int], rate: float
) -> None:
    """Two sources in one minibatch, in any order; a third one has no rows and no state."""
    one, observe = guard()
    reset(one)
    rng = np.random.default_rng(seed)
    states: list[GuardState | None] = [None] * SOURCES
    for size in sizes:
        labels, expected = rows(rng, size, rate, rng.choice([0.0, 0.5, 1.0]))
        sources = rng.integers(0, 2, size).astype(np.int32)
        for source in np.unique(sources).tolist():
            own = sources == source
            before = states[source] or GuardState()
            states[source] = row_by_row(before, labels[own], expected[own])
        held = observe(labels, expected, sources).numpy()
        paused = [state is not None and state.paused for state in states]
        assert held.tolist() == [paused[source] for source in sources]
        for state, found in zip(states, one.states(), strict=True):
            assert (state is None) == (found is None)
            if state is not None and found is not None:
                assert asdict(found) == {
                    name: pytest.approx(each, rel=1e-4, abs=1e-12)
                    for name, each in asdict(state).items()
                }


def test_both_pause_and_resume_alike() -> None:
    """The broken one of two sources is found as soon as if it were alone; the other is not held."""
    one, observe = guard()
    reset(one)
    rng, state, paused = np.random.default_rng(5), GuardState(), []
    for step in range(90):
        labels, expected = rows(rng, 256, 0.12, 0.0 if 40 <= step < 70 else 1.0)
        sound, state = rows(rng, 256, 0.12), row_by_row(state, labels, expected)
        mixed = [
            np.stack(both, axis=1).ravel() for both in zip((labels, expected), sound, strict=True)
        ]
        held = observe(*mixed, np.tile(np.array([0, 2], np.int32), 256)).numpy()
        assert held.tolist() == [state.paused, False] * 256
        assert not bool(one.holds_all().numpy())
        paused.append(state.paused)
    found, never, other = one.states()
    assert never is None
    assert (found.pauses, other.pauses, state.pauses) == (1, 0, 1)
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


def test_the_first_labels_of_a_silent_stream_are_no_fault() -> None:
    """A stream may begin without any label: nothing is usual yet, however long that takes."""
    rng, state = np.random.default_rng(3), GuardState()
    for minibatch in range(80):
        known = 0.0 if minibatch < 60 else 0.4
        state = row_by_row(state, *rows(rng, 500, 0.5, known))
        assert (state.pauses, state.paused) == (0, False), minibatch
