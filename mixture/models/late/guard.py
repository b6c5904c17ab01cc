"""Guard: the rule of `mixture.label_guard` as TensorFlow operations, for each source separately."""

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
    """The states of one seed's guard by source index, in variables of the checkpoint.

    Rows of one source are compared only with what is expected of these rows: if one of two sources
    fails, the sums of both together would look as if half of the labels had come.
    """

    def __init__(self, source_count: int) -> None:

        def zeros(kind: tf.DType) -> tf.Variable:
            return tf.Variable(tf.zeros([source_count], kind), trainable=False)

        self.paused = zeros(tf.bool)
        self.seen = zeros(tf.bool)
        self._pauses = zeros(tf.int64)
        self._sums = {name: zeros(tf.float64) for name in _SUMS}

    @property
    def variables(self) -> dict[str, tf.Variable]:
        own = {"paused": self.paused, "seen": self.seen, "pauses": self._pauses}
        return {**own, **self._sums}

    @property
    def serving(self) -> list[tf.Variable]:
        return [self.paused, self.seen]

    def holds_all(self) -> tf.Tensor:
        """Whether all sources of the stream are paused, so that no fresh row is trained on."""
        paused = self.paused.read_value()
        return tf.reduce_any(paused) & tf.reduce_all(paused | ~self.seen.read_value())

    def states(self) -> list[GuardState | None]:
        """The variables as numbers, by source index; None for a source without rows."""
        sums = {name: variable.numpy().tolist() for name, variable in self._sums.items()}
        facts = zip(
            self.seen.numpy().tolist(),
            self.paused.numpy().tolist(),
            self._pauses.numpy().tolist(),
            _usual(self._sums).numpy().tolist(),
            strict=True,
        )
        return [
            GuardState(
                paused=paused,
                pauses=pauses,
                usual=usual,
                **{name: values[index] for name, values in sums.items()},
            )
            if seen
            else None
            for index, (seen, paused, pauses, usual) in enumerate(facts)
        ]

    def observe(
        self,
        labels: tf.Tensor,
        expected: tf.Tensor,
        sources: tf.Tensor,
        said: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Add the rows of a minibatch, in their order, and decide; bool[N]: which are held now.

        labels, expected: float32[N]. sources: int32[N], the index of each row's source. said:
        bool[N], rows that have the label; None for all. A source counts as seen once one of its
        rows has the label: one that never has it cannot teach it, and must not pass for a sound
        source when others fail.
        """
        seen, expected = tf.cast(labels, tf.float64), tf.cast(expected, tf.float64)
        own = tf.one_hot(sources, self.paused.shape[0], dtype=tf.float64)  # [N, sources]
        if said is not None:
            own *= tf.cast(said, tf.float64)[:, tf.newaxis]
        here = tf.reduce_any(own > 0.0, axis=0)
        was = self.paused.read_value()
        found = self._grown(own, seen[:, tf.newaxis], expected[:, tf.newaxis], was)
        for name, value in found.items():
            self._sums[name].assign(value)
        paused = tf.where(here, _decided(found, was), was)
        self._pauses.assign_add(tf.cast(paused & ~was, tf.int64))
        self.paused.assign(paused)
        self.seen.assign(self.seen | here)
        return tf.gather(paused, sources)

    def _grown(
        self, own: tf.Tensor, seen: tf.Tensor, expected: tf.Tensor, was: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The sums with the rows of a minibatch, float64[sources]."""
        sums, usual = self._sums, _usual(self._sums)
        mass = tf.reduce_sum(own * expected, axis=0)
        after = mass - tf.cumsum(own * expected)  # expected positives in the rows after each
        pace = tf.maximum(usual, USUAL_LEAST)
        fast, kept = own * _halved(pace * after, HALF_LIFE), _halved(pace * mass, HALF_LIFE)
        variance = expected * (1.0 - expected)
        found = {
            "observed": sums["observed"] * kept + tf.reduce_sum(fast * seen, axis=0),
            "expected": sums["expected"] * kept + tf.reduce_sum(fast * expected, axis=0),
            "variance": sums["variance"] * kept * kept
            + tf.reduce_sum(fast * fast * variance, axis=0),
        }
        slow, held = own * _halved(after, USUAL_HALF_LIFE), _halved(mass, USUAL_HALF_LIFE)
        for name, values in (("usual_observed", seen), ("usual_expected", expected)):
            grown = sums[name] * held + tf.reduce_sum(slow * values, axis=0)
            found[name] = tf.where(was, sums[name].read_value(), grown)
        return found


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
