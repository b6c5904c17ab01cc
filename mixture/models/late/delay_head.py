"""DelayHead: q(x, wait) = P(label known at publication | positive), trained on complete labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from forebay.config.specs.models import ModelSpec
from forebay.mixture.models.layers.embeddings import Stack, Tables
from forebay.mixture.models.layers.towers import Tower
from forebay.mixture.models.paradigm import Inputs, checked, named_variables

# q begins at sigmoid(4) = 0.98: before anything is known about delays, labels count as they are.
FIRST_LOGIT = 4.0
LAST_LAYER_SCALE = 0.1
WAIT_INPUTS = 2
SECONDS_PER_HOUR = 3600.0


class DelayRows(NamedTuple):
    """What rows say about delays.

    waits: float32[N] seconds from event to publication, NaN where unknown. known: float32[N], 1
    where the label was known at publication, 0 where not, NaN where that is unknown.
    """

    waits: tf.Tensor
    known: tf.Tensor


class DelayHead:
    """A tower with its own tables, shared by all corrected variants of a seed."""

    def __init__(self, dense: int, stacks: Sequence[Stack], model: ModelSpec) -> None:
        spec = model.delay_head
        self.q_min = spec.q_min
        self._tables = Tables(stacks, model.seed, model.embedding_learning_rate)
        self._tower = Tower(
            dense + sum(stack.width for stack in stacks) + WAIT_INPUTS,
            spec.hidden,
            seed=model.seed,
            rate=model.dense_learning_rate,
        )
        self._tower.scale_last_layer(LAST_LAYER_SCALE, FIRST_LOGIT)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        return named_variables({"embeddings": self._tables, "tower": self._tower})

    def known_share(self, inputs: Inputs, delays: DelayRows) -> tf.Tensor:
        """The share q of each row, float32[N]."""
        read = self._tables.read(inputs.places)
        joined = tf.concat([inputs.features(read), _wait_inputs(delays.waits)], axis=1)
        return tf.sigmoid(self._tower.forward(self._tower.weights, joined).logit)

    def learn(self, inputs: Inputs, labels: tf.Tensor, delays: DelayRows) -> tf.Tensor:
        """One step on the rows of a batch minibatch that are positive and whose delay is known.

        Without such rows, nothing changes. Returns the mean loss before the step, 0 without rows.
        """
        part = (labels > 0.5) & ~tf.math.is_nan(delays.known)
        return tf.cond(
            tf.reduce_any(part), lambda: self._learn(inputs, delays, part), lambda: tf.constant(0.0)
        )

    def _learn(self, inputs: Inputs, delays: DelayRows, part: tf.Tensor) -> tf.Tensor:
        read = self._tables.read(inputs.places)
        weights = self._tower.weights.read_value()
        waits = tf.boolean_mask(_wait_inputs(delays.waits), part)
        known = tf.boolean_mask(delays.known, part)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([weights, *read])
            features = tf.boolean_mask(inputs.features(read), part)
            logit = self._tower.forward(weights, tf.concat([features, waits], axis=1)).logit
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=known, logits=logit)
            loss = tf.reduce_mean(losses)
        gradient, *row_gradients = tape.gradient(loss, [weights, *read])
        self._tower.update(gradient)
        self._tables.update(inputs.places, row_gradients)
        return checked(loss, gradient)


def _wait_inputs(waits: tf.Tensor) -> tf.Tensor:
    """[N, 2]: log(1 + hours), 0 where the wait is unknown; and whether it is known."""
    unknown = tf.math.is_nan(waits)
    hours = tf.maximum(tf.where(unknown, tf.zeros_like(waits), waits), 0.0) / SECONDS_PER_HOUR
    return tf.stack([tf.math.log1p(hours), 1.0 - tf.cast(unknown, tf.float32)], axis=1)
