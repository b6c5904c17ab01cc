"""Guard: the rule of `mixture.label_guard` as TensorFlow operations on whole minibatches."""

from __future__ import annotations

import math
from collections.abc import Mapping

import tensorflow as tf

from forebay.mixture.label_guard import (
    HALF_LIFE,
    PAUSE_BELOW,
    PAUSE_DEVIATIONS,
    RESUME_ABOVE,
    USUAL_HALF_LIFE,
    USUAL_LEAST,
    USUAL_MIN,
    GuardState,
)

_SUMS = ("observed", "expected", "variance", "usual_observed", "usual_expected")


class Guard:
    """The state of one seed's guard, in variables of the checkpoint."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self.paused = tf.Variable(tf.zeros([], tf.bool), trainable=False)
        self._pauses = tf.Variable(tf.constant(0, tf.int64), trainable=False)
        self._sums = {
            name: tf.Variable(tf.constant(0.0, tf.float64), trainable=False) for name in _SUMS
        }

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """State by name."""
        return {"paused": self.paused, "pauses": self._pauses, **self._sums}

    def state(self) -> GuardState:
        """The variables as numbers."""
        return GuardState(
            paused=bool(self.paused.numpy()),
            pauses=int(self._pauses.numpy()),
            usual=float(_usual(self._sums).numpy()),
            **{name: float(variable.numpy()) for name, variable in self._sums.items()},
        )

    def observe(self, labels: tf.Tensor, expected: tf.Tensor) -> tf.Tensor:
        """Add the rows of a minibatch, in their order, and decide; whether it is paused now."""
        seen, expected = tf.cast(labels, tf.float64), tf.cast(expected, tf.float64)
        was, sums = self.paused.read_value(), self._sums
        usual, mass = _usual(sums), tf.reduce_sum(expected)
        after = mass - tf.cumsum(expected)  # expected positives in the rows behind each
        pace = tf.maximum(usual, USUAL_LEAST)
        fast, kept = _halved(pace * after, HALF_LIFE), _halved(pace * mass, HALF_LIFE)
        variance = expected * (1.0 - expected)
        found = {
            "observed": sums["observed"] * kept + tf.reduce_sum(fast * seen),
            "expected": sums["expected"] * kept + tf.reduce_sum(fast * expected),
            "variance": sums["variance"] * kept * kept + tf.reduce_sum(fast * fast * variance),
        }
        slow, held = _halved(after, USUAL_HALF_LIFE), _halved(mass, USUAL_HALF_LIFE)
        for name, values in (("usual_observed", seen), ("usual_expected", expected)):
            grown = sums[name] * held + tf.reduce_sum(slow * values)
            found[name] = tf.where(was, sums[name].read_value(), grown)
        for name, value in found.items():
            sums[name].assign(value)
        paused = _decided(found, was)
        self._pauses.assign_add(tf.cast(paused & ~was, tf.int64))
        self.paused.assign(paused)
        return paused


def _decided(sums: Mapping[str, tf.Tensor], was: tf.Tensor) -> tf.Tensor:
    usual = _usual(sums)
    observed, expected = sums["observed"], usual * sums["expected"]
    deviation = tf.sqrt(usual * sums["variance"])
    pause = (
        (sums["usual_expected"] >= USUAL_MIN)
        & (expected - observed > PAUSE_DEVIATIONS * deviation)
        & (observed < PAUSE_BELOW * expected)
    )
    return tf.where(was, observed <= RESUME_ABOVE * expected, pause)


def _usual(sums: Mapping[str, tf.Tensor | tf.Variable]) -> tf.Tensor:
    observed, expected = sums["usual_observed"] + 0.0, sums["usual_expected"] + 0.0
    share = tf.minimum(observed / tf.maximum(expected, USUAL_MIN), 1.0)
    return tf.where(expected >= USUAL_MIN, share, tf.ones_like(share))


def _halved(mass: tf.Tensor, half_life: float) -> tf.Tensor:
    return tf.exp(-math.log(2.0) / half_life * mass)
