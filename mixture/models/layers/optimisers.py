"""Optimisers as plain TensorFlow operations whose state we save ourselves."""

from __future__ import annotations

import tensorflow as tf

BETA1, BETA2, ADAM_EPSILON = 0.9, 0.999, 1e-7
ADAGRAD_EPSILON = 1e-10


class Adam:
    """Adam over one flat variable: one fused operation for all dense weights of a tower."""

    def __init__(self, size: int, rate: float) -> None:
        self._rate = rate
        self.first = tf.Variable(tf.zeros([size]), trainable=False)
        self.second = tf.Variable(tf.zeros([size]), trainable=False)
        self.beta1_power = tf.Variable(BETA1, trainable=False)
        self.beta2_power = tf.Variable(BETA2, trainable=False)

    @property
    def variables(self) -> dict[str, tf.Variable]:
        return {
            "first": self.first,
            "second": self.second,
            "beta1_power": self.beta1_power,
            "beta2_power": self.beta2_power,
        }

    def apply(self, weights: tf.Variable, gradient: tf.Tensor) -> None:
        tf.raw_ops.ResourceApplyAdam(
            var=weights.handle,
            m=self.first.handle,
            v=self.second.handle,
            beta1_power=self.beta1_power.read_value(),
            beta2_power=self.beta2_power.read_value(),
            lr=self._rate,
            beta1=BETA1,
            beta2=BETA2,
            epsilon=ADAM_EPSILON,
            grad=gradient,
        )
        self.beta1_power.assign(self.beta1_power * BETA1)
        self.beta2_power.assign(self.beta2_power * BETA2)


def row_wise_adagrad(
    table: tf.Variable, sums: tf.Variable, rows: tf.Tensor, gradient: tf.Tensor, rate: float
) -> None:
    """One Adagrad step on distinct `rows` of a table, with one squared-gradient sum per row."""
    grown = sums.sparse_read(rows) + tf.reduce_mean(tf.square(gradient), axis=1)
    sums.scatter_update(tf.IndexedSlices(grown, rows))
    scale = rate * tf.math.rsqrt(grown + ADAGRAD_EPSILON)
    table.scatter_sub(tf.IndexedSlices(gradient * scale[:, tf.newaxis], rows))
